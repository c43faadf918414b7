# What the VM runs first. `self` is the core, an object that only these blocks reach; its other methods are in shim.c.
#
# An operation suspends the fiber of the run. A script may have fibers of its own in between, as `Enumerator#next` has:
# each passes the suspension on to the one that resumed it, until the run's own fiber has yielded to the host.

core = self

(class << Fiber; self; end).class_eval do
  alias_method :__yield, :yield

  define_method(:yield) do |*values|
    raise FiberError, "can't yield from root fiber" if core.in_run_itself?
    __yield(*values)
  end
end

Fiber.class_eval do
  alias_method :__resume, :resume
  # Control that leaves a fiber without returning to its resumer would leave the run.
  undef_method :transfer

  define_method(:resume) do |*arguments|
    value = __resume(*arguments)
    while core.pending?
      Fiber.__yield
      value = __resume
    end
    value
  end
end

def core.await
  begin
    Fiber.__yield
  rescue FiberError
    abandon
    raise FiberError, "cannot wait here, as a function of mruby itself called this block; wait outside of it"
  end
  outcome
end

# Defines a method whose native function may return an operation instead of a value.
def core.awaiting(owner, name, function)
  core = self
  owner.define_method(name) do |*arguments|
    value = core.native(function, self, arguments)
    core.pending? ? core.await : value
  end
end

# A fiber that runs one script after the other.
def core.worker
  core = self
  Fiber.new do
    while true
      begin
        core.finish(core.run)
      rescue Exception => error
        message = begin
          error.message.to_s
        rescue StandardError
          nil
        end
        core.fail(error, message)
      end
      Fiber.__yield
    end
  end
end
