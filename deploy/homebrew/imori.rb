# A formula for Homebrew on Linux; `ci/packages.py --url-base URL` fills in the names between @.
class Imori < Formula
  desc "Message broker for STOMP, NATS and AMQP clients"
  homepage "@URL_BASE@"
  url "@URL_BASE@/@ARCHIVE@"
  version "@VERSION@"
  sha256 "@SHA256@"
  license "Apache-2.0"

  depends_on arch: :@ARCHITECTURE@
  depends_on :linux

  def install
    bin.install "bin/imori"
    man1.install Dir["share/man/man1/*"]
    bash_completion.install "share/bash-completion/completions/imori"
    fish_completion.install "share/fish/vendor_completions.d/imori.fish"
    zsh_completion.install "share/zsh/vendor-completions/_imori"
    doc.install Dir["share/doc/imori/*"]
  end

  service do
    run [opt_bin/"imori", "serve", "--data-dir", var/"imori"]
    keep_alive successful_exit: false
    log_path var/"log/imori.log"
    error_log_path var/"log/imori.log"
  end

  test do
    assert_match version.to_s, shell_output("#{bin}/imori version")
  end
end
