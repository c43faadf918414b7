# Installs a formula from a local archive: the part of Homebrew that deploy/homebrew/imori.rb uses.
# Usage: ruby homebrew.rb FORMULA ARCHIVE PREFIX
# Prints the command of the formula's service, one word a line.

require "digest"
require "pathname"
require "tmpdir"

class Formula
  %i[desc homepage url version sha256 license].each do |field|
    define_singleton_method(field) { |value = nil| value ? instance_variable_set("@#{field}", value) : instance_variable_get("@#{field}") }
  end
  %i[service test].each do |part|
    define_singleton_method(part) { |&block| block ? instance_variable_set("@#{part}", block) : instance_variable_get("@#{part}") }
  end

  def self.depends_on(on)
    found = on == :linux ? RUBY_PLATFORM.include?("linux") : `uname -m`.sub("aarch64", "arm64").strip == on.fetch(:arch).to_s
    raise "this machine is not #{on}" unless found
  end

  def self.inherited(formula)
    super
    @made = formula
  end

  def self.made
    @made
  end

  # A folder of the prefix, as `bin.install` uses it.
  class Folder < Pathname
    def install(*sources)
      mkpath
      sources.flatten.each { |source| FileUtils.cp(source, self) }
    end
  end

  def initialize(prefix)
    @prefix = Pathname.new(prefix)
  end

  {
    bin: "bin",
    opt_bin: "bin",
    var: "var",
    man1: "share/man/man1",
    doc: "share/doc/imori",
    bash_completion: "etc/bash_completion.d",
    fish_completion: "share/fish/vendor_completions.d",
    zsh_completion: "share/zsh/site-functions",
  }.each { |name, path| define_method(name) { Folder.new(@prefix/path) } }

  def version
    self.class.version
  end

  def shell_output(command)
    output = `#{command}`
    raise "#{command}: #{$?}" unless $?.success?
    output
  end

  def assert_match(wanted, text)
    raise "#{text} has no #{wanted}" unless text.include?(wanted)
  end

  def run(command)
    puts command
  end

  def keep_alive(**) = nil
  def log_path(_path) = nil
  def error_log_path(_path) = nil
end

formula, archive, prefix = ARGV
load formula
made = Formula.made
raise "#{archive} is not #{made.url}" unless File.basename(made.url) == File.basename(archive)
raise "#{archive} has another hash" unless Digest::SHA256.file(archive).hexdigest == made.sha256
raise "#{made.desc} is over 80 characters" if made.desc.length > 80

installed = made.new(prefix)
Dir.mktmpdir do |folder|
  system("tar", "-xf", archive, "-C", folder, exception: true)
  Dir.chdir(Dir["#{folder}/*"].fetch(0)) { installed.install }
end
installed.instance_exec(&made.test)
installed.instance_exec(&made.service)
