# Blocks that run beside each other. Each has a number, by which the host starts it in a fiber of its own.

module Imori
  class Child
    @children = {}
    @last = 0

    class << self
      # Runs blocks beside each other, and returns their values. The first exception is raised, and ends the others.
      def await(blocks, within = nil)
        children = blocks.map { |block| Child.new(block) }
        numbers = children.map { |child| add(child) }
        begin
          unless __run(numbers, within)
            failed = children.find { |child| child.error }
            raise failed.error if failed
          end
          children.map { |child| child.value }
        ensure
          numbers.each { |number| @children.delete(number) }
        end
      end

      def run(number)
        @children[number].run
      end

      private

      def add(child)
        @last += 1
        @children[@last] = child
        @last
      end
    end

    attr_reader :value, :error

    def initialize(block)
      @block = block
    end

    def run
      @value = @block.call
      true
    rescue StandardError => error
      @error = error
      false
    end
  end

  class << self
    # parallel(proc, proc): the values of the procs. parallel(items) { |item| }: the values of the block for the items.
    def parallel(*tasks, &block)
      if block
        items = tasks.size == 1 && tasks[0].respond_to?(:map) ? tasks[0] : tasks
        tasks = items.map { |item| -> { block.call(item) } }
      end
      return [] if tasks.empty?

      Child.await(tasks)
    end

    # The value of the block, or Imori::TimeoutError after so many milliseconds.
    def timeout(ms, &block)
      raise ArgumentError, "timeout takes a block" unless block

      Child.await([block], ms)[0]
    end
  end
end
