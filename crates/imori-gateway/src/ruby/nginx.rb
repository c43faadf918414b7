# `Nginx` in the words of ngx_mruby. What touches the request is native; texts are made here, where `to_s` may be Ruby.

class Nginx
  class << self
    def rputs(text)
      __put(text.is_a?(String) ? text : text.to_s)
      self
    end

    def echo(text)
      __put(text.is_a?(String) ? text : text.to_s, "\n")
      self
    end

    def redirect(target, status = Nginx::HTTP_MOVED_TEMPORARILY)
      __redirect(target.to_s, status)
      self
    end

    def errlogger(level, message)
      __log(level, message.to_s)
      self
    end
    alias_method :log, :errlogger

    def remove_global_variable(name)
      Imori.set_global(name, nil)
      global_variables
    end

    def var
      Nginx::Var.new
    end
  end
end

module Kernel
  def get_server_class
    Nginx
  end

  def server_name
    "NGINX"
  end
end
