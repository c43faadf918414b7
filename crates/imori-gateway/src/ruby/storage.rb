# Values that outlive a request: Userdata for objects of one worker, and the others for plain values of all workers.

class ThreadError < StandardError; end

# Objects by name, as long as the worker's scripts.
class Userdata
  @stores = {}

  class << self
    def __store(name)
      @stores[name] ||= {}
    end
  end

  def initialize(name = "default")
    @store = Userdata.__store(name.to_s)
  end

  def [](name)
    @store[name.to_sym]
  end

  def []=(name, value)
    @store[name.to_sym] = value
  end

  def method_missing(name, *arguments)
    text = name.to_s
    if text.end_with?("=")
      @store[text[0, text.size - 1].to_sym] = arguments[0]
    elsif arguments.empty?
      @store[name]
    else
      super
    end
  end

  def respond_to_missing?(_name, _private = false)
    true
  end
end

# Texts by key, as in the gem mruby-localmemcache, with expiry in milliseconds.
class Cache
  def self.drop(options = {})
    Imori::Shared.__clear("cache:#{options[:namespace] || options[:filename]}")
  end

  def initialize(options = {})
    options = { namespace: options } unless options.is_a?(Hash)
    @name = "cache:#{options[:namespace] || options[:filename] || "default"}"
  end

  def get(key)
    Imori::Shared.__get(@name, key.to_s)
  end
  alias_method :[], :get

  def set(key, value, expires = nil)
    Imori::Shared.__set(@name, key.to_s, value, expires)
    value
  end
  alias_method :[]=, :set

  def delete(key)
    Imori::Shared.__delete(@name, key.to_s)
  end

  def keys
    Imori::Shared.__keys(@name)
  end

  def size
    keys.size
  end

  def include?(key)
    !get(key).nil?
  end
  alias_method :has_key?, :include?

  def each_pair
    keys.each { |key| yield key, get(key) }
    self
  end

  def clear
    Imori::Shared.__clear(@name)
    self
  end

  def close
    nil
  end
end

# A lock. One with `global: true`, or with a name, is the same in all workers. A run that ends lets its locks go.
class Mutex
  @last = 0

  def self.__next
    @last += 1
  end

  def initialize(options = {})
    @name = if options[:name]
      "name:#{options[:name]}"
    elsif options[:global]
      "global"
    else
      "own:#{SecureRandom.hex}:#{Mutex.__next}"
    end
  end

  def lock
    Mutex.__lock(@name)
    self
  end

  def try_lock
    Mutex.__try_lock(@name)
  end
  alias_method :trylock, :try_lock

  def unlock
    Mutex.__unlock(@name)
    self
  end

  def locked?
    Mutex.__locked(@name)
  end

  def synchronize
    lock
    begin
      yield
    ensure
      unlock
    end
  end
end

module Imori
  # Plain values by key, in all workers; `expires` is in milliseconds.
  module Shared
    class << self
      def get(key)
        __get("", key.to_s)
      end
      alias_method :[], :get

      def set(key, value, expires: nil)
        __set("", key.to_s, value, expires)
        value
      end

      def []=(key, value)
        set(key, value)
      end

      # Sets a key that has no value; returns whether it had none.
      def add(key, value, expires: nil)
        __add("", key.to_s, value, expires)
      end

      # Counts from 0; a new counter expires after so long.
      def increment(key, by = 1, expires: nil)
        __increment("", key.to_s, by, expires)
      end

      def decrement(key, by = 1, expires: nil)
        __increment("", key.to_s, -by, expires)
      end

      def delete(key)
        __delete("", key.to_s)
      end
    end
  end

  def self.shared
    Shared
  end
end
