# Regular expressions in Ruby's words, for literals too. Offsets inside are bytes; those that scripts see are letters.

class MatchData
  attr_reader :string, :regexp

  def initialize(regexp, string, ends)
    @regexp = regexp
    @string = string
    @ends = ends
  end

  def [](group, length = nil)
    return to_a[group, length] if length

    case group
    when Integer then at(group)
    when Range then to_a[group]
    else
      name = group.to_s
      number = @regexp.__numbers[name]
      raise IndexError, "undefined group name reference: #{name}" unless number

      at(number)
    end
  end

  def to_a
    (0...size).map { |group| at(group) }
  end

  def captures
    (1...size).map { |group| at(group) }
  end

  def named_captures
    pairs = {}
    @regexp.__numbers.each { |name, group| pairs[name] = at(group) }
    pairs
  end

  def names
    @regexp.names
  end

  def size
    @ends.size / 2
  end
  alias_method :length, :size

  def values_at(*groups)
    groups.map { |group| self[group] }
  end

  def begin(group)
    letters(@ends[group * 2])
  end

  def end(group)
    letters(@ends[group * 2 + 1])
  end

  def offset(group)
    [self.begin(group), self.end(group)]
  end

  def pre_match
    @string.byteslice(0, @ends[0])
  end

  def post_match
    @string.byteslice(@ends[1], @string.bytesize - @ends[1])
  end

  def to_s
    at(0)
  end

  def inspect
    "#<MatchData #{at(0).inspect}>"
  end

  def ==(other)
    other.is_a?(MatchData) && to_a == other.to_a && string == other.string
  end

  def __ends
    @ends
  end

  private

  def at(group)
    group += size if group < 0
    first = group >= 0 ? @ends[group * 2] : nil
    first && @string.byteslice(first, @ends[group * 2 + 1] - first)
  end

  def letters(offset)
    offset && @string.byteslice(0, offset).size
  end
end

class OnigRegexp
  IGNORECASE = 1
  EXTENDED = 2
  MULTILINE = 4

  # The variables that the groups of the last match are in.
  NAMES = [nil, "$1", "$2", "$3", "$4", "$5", "$6", "$7", "$8", "$9"].freeze

  @last = nil
  @groups = 0

  class << self
    def compile(*arguments)
      new(*arguments)
    end

    def escape(text)
      __escape(text.to_s)
    end
    alias_method :quote, :escape

    def union(*patterns)
      patterns = patterns[0] if patterns.size == 1 && patterns[0].is_a?(Array)
      new(patterns.map { |pattern| pattern.is_a?(OnigRegexp) ? pattern.to_s : escape(pattern) }.join("|"))
    end

    # The last match of the worker; use the value of `match` where a script waits in between.
    def last_match(group = nil)
      group && OnigRegexp.__last ? OnigRegexp.__last[group] : OnigRegexp.__last
    end

    def __last
      @last
    end

    def __last=(found)
      @last = found
      Imori.set_global("$~", found)
      groups = found ? found.size - 1 : 0
      (1..(groups > @groups ? groups : @groups)).each do |group|
        name = NAMES[group]
        Imori.set_global(name, group > groups ? nil : found[group]) if name
      end
      @groups = groups
    end
  end

  attr_reader :source, :options

  def initialize(source, options = nil, _encoding = nil)
    if source.is_a?(OnigRegexp)
      options = source.options
      source = source.source
    end
    @source = source.to_s
    @options = flags(options)
    @pattern = OnigRegexp.__compile(@source, @options)
  end

  def match(text, position = 0)
    return OnigRegexp.__last = nil if text.nil?

    text = text.to_s
    from = position == 0 ? 0 : text[0, position].to_s.bytesize
    OnigRegexp.__last = __match(text, from)
  end

  def match?(text, position = 0)
    return false if text.nil?

    text = text.to_s
    !@pattern.find(text, position == 0 ? 0 : text[0, position].to_s.bytesize).nil?
  end

  def =~(text)
    found = match(text)
    found && found.begin(0)
  end

  def ===(text)
    (text.is_a?(String) || text.is_a?(Symbol)) && !match(text.to_s).nil?
  end

  def names
    @pattern.names.compact
  end

  def casefold?
    @options & IGNORECASE != 0
  end

  def ==(other)
    other.is_a?(OnigRegexp) && source == other.source && options == other.options
  end
  alias_method :eql?, :==

  def hash
    [@source, @options].hash
  end

  def inspect
    "/#{@source}/#{letters}"
  end

  def to_s
    on = letters
    off = "mix".delete(on.empty? ? "-" : on)
    "(?#{on}#{"-" unless off.empty?}#{off}:#{@source})"
  end

  def __numbers
    numbers = {}
    @pattern.names.each_with_index { |name, group| numbers[name] = group if name }
    numbers
  end

  def __match(text, from)
    ends = @pattern.find(text, from)
    ends && MatchData.new(self, text, ends)
  end

  def __matches(text)
    @pattern.find_all(text).map { |ends| MatchData.new(self, text, ends) }
  end

  private

  def flags(options)
    case options
    when nil, false then 0
    when Integer then options & 7
    when String
      (options.include?("i") ? 1 : 0) | (options.include?("x") ? 2 : 0) | (options.include?("m") ? 4 : 0)
    else IGNORECASE
    end
  end

  def letters
    "#{"m" if @options & 4 != 0}#{"i" if @options & 1 != 0}#{"x" if @options & 2 != 0}"
  end
end

Regexp = OnigRegexp

class String
  alias_method :__sub, :sub
  alias_method :__gsub, :gsub
  alias_method :__split, :split
  alias_method :__index, :index
  alias_method :__slice, :[]
  alias_method :__start_with, :start_with?

  def =~(pattern)
    pattern =~ self
  end

  def match(pattern, position = 0)
    (pattern.is_a?(OnigRegexp) ? pattern : OnigRegexp.new(pattern)).match(self, position)
  end

  def match?(pattern, position = 0)
    (pattern.is_a?(OnigRegexp) ? pattern : OnigRegexp.new(pattern)).match?(self, position)
  end

  def [](*arguments)
    return __slice(*arguments) unless arguments[0].is_a?(OnigRegexp)

    found = arguments[0].match(self)
    found && found[arguments[1] || 0]
  end
  alias_method :slice, :[]

  def scan(pattern, &block)
    pattern = OnigRegexp.new(OnigRegexp.escape(pattern)) unless pattern.is_a?(OnigRegexp)
    found = pattern.__matches(self).map { |match| match.size > 1 ? match.captures : match.to_s }
    return found unless block

    found.each(&block)
    self
  end

  def sub(*arguments, &block)
    return __sub(*arguments, &block) unless arguments[0].is_a?(OnigRegexp)

    found = arguments[0].match(self)
    found ? __replace([found], arguments, block) : dup
  end

  def gsub(*arguments, &block)
    return __gsub(*arguments, &block) unless arguments[0].is_a?(OnigRegexp)

    __replace(arguments[0].__matches(self), arguments, block)
  end

  def sub!(*arguments, &block)
    changed = sub(*arguments, &block)
    changed == self ? nil : replace(changed)
  end

  def gsub!(*arguments, &block)
    changed = gsub(*arguments, &block)
    changed == self ? nil : replace(changed)
  end

  def split(*arguments)
    pattern, limit = arguments
    return __split(*arguments) unless pattern.is_a?(OnigRegexp)

    limit ||= 0
    parts = []
    at = 0
    pattern.__matches(self).each do |found|
      break if limit > 0 && parts.size + 1 >= limit

      first, last = found.__ends
      next if last == 0 || first == last && first >= bytesize

      parts << byteslice(at, first - at)
      parts.concat(found.captures.compact)
      at = last
    end
    parts << byteslice(at, bytesize - at)
    parts.pop while limit == 0 && parts.last && parts.last.empty?
    parts
  end

  def index(pattern, position = 0)
    return __index(pattern, position) unless pattern.is_a?(OnigRegexp)

    found = pattern.match(self, position < 0 ? position + size : position)
    found && found.begin(0)
  end

  def start_with?(*prefixes)
    prefixes.any? do |prefix|
      if prefix.is_a?(OnigRegexp)
        found = prefix.match(self)
        !found.nil? && found.__ends[0] == 0
      else
        __start_with(prefix)
      end
    end
  end

  private

  def __replace(matches, arguments, block)
    raise ArgumentError, "a replacement or a block is missing" if arguments.size < 2 && !block

    parts = []
    at = 0
    matches.each do |found|
      first, last = found.__ends
      parts << byteslice(at, first - at)
      parts << __replacement(found, arguments, block)
      at = last
    end
    parts << byteslice(at, bytesize - at)
    parts.join
  end

  def __replacement(found, arguments, block)
    if arguments.size < 2
      OnigRegexp.__last = found
      return block.call(found.to_s).to_s
    end
    with = arguments[1]
    return with[found.to_s].to_s if with.is_a?(Hash)

    with = with.to_s
    return with unless with.include?("\\")

    parts = []
    at = 0
    while at < with.size
      letter = with[at]
      following = with[at + 1]
      if letter != "\\" || following.nil?
        parts << letter
        at += 1
        next
      end
      at += 2
      case following
      when "0".."9" then parts << found[following.to_i].to_s
      when "&" then parts << found.to_s
      when "`" then parts << found.pre_match
      when "'" then parts << found.post_match
      when "\\" then parts << "\\"
      when "k"
        close = with.__index(">", at)
        raise ArgumentError, "the name of a group ends with `>`" unless close

        parts << found[with[at + 1, close - at - 1]].to_s
        at = close + 1
      else parts << "\\" << following
      end
    end
    parts.join
  end
end

class Symbol
  def =~(pattern)
    to_s =~ pattern
  end
end
