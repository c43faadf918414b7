# Digests, random values and Base64 in the words of the gems that ngx_mruby has.

module Digest
  class Base
    attr_reader :data

    class << self
      def algorithm
        name.split("::").last
      end

      def digest(data)
        Digest.__digest(algorithm, data.to_s)
      end

      def hexdigest(data)
        Digest.__hex(digest(data))
      end

      def base64digest(data)
        Base64.strict_encode64(digest(data))
      end
    end

    def initialize
      @data = ""
    end

    def update(data)
      @data += data.to_s
      self
    end
    alias_method :<<, :update

    def reset
      @data = ""
      self
    end

    def digest
      self.class.digest(@data)
    end

    def hexdigest
      self.class.hexdigest(@data)
    end
    alias_method :to_s, :hexdigest

    def digest_length
      digest.bytesize
    end

    def block_length
      digest_length > 32 ? 128 : 64
    end
  end

  class MD5 < Base; end
  class SHA1 < Base; end
  class SHA256 < Base; end
  class SHA384 < Base; end
  class SHA512 < Base; end

  class HMAC < Base
    class << self
      def digest(data, key, digest)
        Digest.__hmac(digest.algorithm, key.to_s, data.to_s)
      end

      def hexdigest(data, key, digest)
        Digest.__hex(digest(data, key, digest))
      end
    end

    def initialize(key, digest)
      super()
      @key = key
      @digest = digest
    end

    def digest
      HMAC.digest(@data, @key, @digest)
    end

    def hexdigest
      HMAC.hexdigest(@data, @key, @digest)
    end
    alias_method :to_s, :hexdigest
  end

  class << self
    def __hex(bytes)
      bytes.unpack("H*")[0]
    end

    def hexencode(bytes)
      __hex(bytes)
    end
  end
end

module Imori
  # Keyed digests; `verify` takes the same time for every wrong tag.
  module HMAC
    class << self
      def digest(key, data, algorithm = :SHA256)
        Digest.__hmac(algorithm.to_s.upcase, key.to_s, data.to_s)
      end

      def hexdigest(key, data, algorithm = :SHA256)
        Digest.__hex(digest(key, data, algorithm))
      end

      # Whether the tag, raw or in hexadecimal, is the one of the data.
      def verify(key, data, tag, algorithm = :SHA256)
        own = digest(key, data, algorithm)
        own = Digest.__hex(own) if tag.to_s.bytesize == own.bytesize * 2
        Digest.__equal(own, tag.to_s)
      end
    end
  end

  class << self
    # Whether two texts are equal, in a time that depends on their lengths alone.
    def secure_compare(left, right)
      Digest.__equal(left.to_s, right.to_s)
    end

    # A secret of the configuration.
    def secret(name)
      __secret(name.to_s)
    end
  end
end

module SecureRandom
  class << self
    alias_method :bytes, :random_bytes

    def hex(count = 16)
      Digest.__hex(random_bytes(count))
    end

    def base64(count = 16)
      Base64.strict_encode64(random_bytes(count))
    end

    def urlsafe_base64(count = 16)
      Base64.urlsafe_encode64(random_bytes(count))
    end

    def uuid
      digits = hex(16)
      variant = "89ab"[digits[16].hex & 3]
      "#{digits[0, 8]}-#{digits[8, 4]}-4#{digits[13, 3]}-#{variant}#{digits[17, 3]}-#{digits[20, 12]}"
    end

    # An integer below `limit`, or a float below 1.
    def random_number(limit = 0)
      number = hex(7).hex
      return number / (1 << 56).to_f if limit.nil? || limit <= 0

      limit.is_a?(Float) ? number / (1 << 56).to_f * limit : number % limit
    end
  end
end

module Base64
  class << self
    def strict_encode64(data)
      __encode(data.to_s, "standard")
    end
    alias_method :encode, :strict_encode64
    alias_method :encode64, :strict_encode64

    def urlsafe_encode64(data)
      __encode(data.to_s, "url")
    end

    def decode(text)
      __decode(text.to_s)
    end
    alias_method :decode64, :decode
    alias_method :strict_decode64, :decode
    alias_method :urlsafe_decode64, :decode
  end
end
