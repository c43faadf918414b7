# JSON in the words of Ruby and of mruby-json.

module JSON
  class << self
    def parse(text, symbolize_names: false)
      value = __parse(text.is_a?(String) ? text : text.to_s)
      symbolize_names ? symbolize(value) : value
    end
    alias_method :load, :parse

    def generate(value)
      encode(value, false)
    end
    alias_method :stringify, :generate
    alias_method :dump, :generate

    def pretty_generate(value)
      encode(value, true)
    end

    private

    # Most values are plain already.
    def encode(value, is_pretty)
      __generate(value, is_pretty)
    rescue JSON::GeneratorError
      __generate(plain(value, 0), is_pretty)
    end

    # The value with plain ones in place of other objects: `to_h` if there is one, or else the text.
    def plain(value, depth)
      raise JSON::GeneratorError, "the value is over 64 levels deep" if depth > 64

      case value
      when nil, true, false, Integer, Float, String, Symbol
        value
      when Array
        value.map { |item| plain(item, depth + 1) }
      when Hash
        pairs = {}
        value.each { |key, item| pairs[key.is_a?(String) ? key : key.to_s] = plain(item, depth + 1) }
        pairs
      else
        value.respond_to?(:to_h) ? plain(value.to_h, depth + 1) : value.to_s
      end
    end

    def symbolize(value)
      case value
      when Array
        value.map { |item| symbolize(item) }
      when Hash
        pairs = {}
        value.each { |key, item| pairs[key.to_sym] = symbolize(item) }
        pairs
      else
        value
      end
    end
  end
end

class Object
  def to_json
    JSON.generate(self)
  end
end
