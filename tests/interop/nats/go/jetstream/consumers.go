package main

import (
	"errors"
	"fmt"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

func consume(run run) {
	const count = 1000
	consumer := run.consumer(run.filled(count))
	got := make(chan string, count)
	consuming := must(consumer.Consume(func(message jetstream.Msg) {
		check(message.Ack())
		got <- string(message.Data())
	}, jetstream.PullMaxMessages(100)))
	for number := range count {
		equal(wait(got), fmt.Sprint(number))
	}
	consuming.Drain()
	wait(consuming.Closed())
	check(run.connection.Flush())
	info := must(consumer.Info(run.context))
	equal([]any{info.NumPending, info.NumAckPending}, []any{uint64(0), 0})
}

func messages(run run) {
	const count = 100
	consumer := run.consumer(run.filled(count))
	iterator := must(consumer.Messages(jetstream.PullMaxMessages(10)))
	for number := range count {
		message := must(iterator.Next())
		equal(string(message.Data()), fmt.Sprint(number))
		equal(must(message.Metadata()).Sequence.Stream, uint64(number+1))
		check(message.Ack())
	}
	iterator.Stop()
	_, err := iterator.Next()
	equal(errors.Is(err, jetstream.ErrMsgIteratorClosed), true)
}

// taken gives the bodies of a batch, and acknowledges each message.
func taken(batch jetstream.MessageBatch) []string {
	var bodies []string
	for message := range batch.Messages() {
		check(message.Ack())
		bodies = append(bodies, string(message.Data()))
	}
	check(batch.Error())
	return bodies
}

func fetch(run run) {
	consumer := run.consumer(run.filled(6))
	equal(taken(must(consumer.Fetch(3))), []string{"0", "1", "2"})
	equal(taken(must(consumer.FetchNoWait(2))), []string{"3", "4"})
	equal(taken(must(consumer.Fetch(5, jetstream.FetchMaxWait(300*time.Millisecond)))), []string{"5"})
	equal(len(taken(must(consumer.FetchNoWait(5)))), 0)
	must(run.js.Publish(run.context, name+".a", []byte("6")))
	equal(taken(must(consumer.FetchBytes(1000, jetstream.FetchMaxWait(300*time.Millisecond)))), []string{"6"})
	_, err := consumer.Next(jetstream.FetchMaxWait(100 * time.Millisecond))
	equal(errors.Is(err, nats.ErrTimeout), true)
}

func acknowledgements(run run) {
	consumer := run.consumer(run.filled(4))
	var all []jetstream.Msg
	for message := range must(consumer.Fetch(4)).Messages() {
		all = append(all, message)
	}
	check(all[0].DoubleAck(run.context))
	check(all[1].Nak())
	check(all[2].TermWithReason("no use"))
	again := must(consumer.Next())
	equal(string(again.Data()), "1")
	equal(must(again.Metadata()).NumDelivered, uint64(2))
	check(again.InProgress())
	check(again.DoubleAck(run.context))
	check(all[3].NakWithDelay(50 * time.Millisecond))
	delayed := must(consumer.Next())
	equal(string(delayed.Data()), "3")
	check(delayed.DoubleAck(run.context))
	info := must(consumer.Info(run.context))
	equal([]any{info.NumPending, info.NumAckPending}, []any{uint64(0), 0})
	equal(info.AckFloor.Stream, uint64(4))
}

func orderedConsumer(run run) {
	const count = 500
	run.filled(count)
	consumer := must(run.js.OrderedConsumer(run.context, name, jetstream.OrderedConsumerConfig{}))
	got := make(chan string, count)
	consuming := must(consumer.Consume(func(message jetstream.Msg) { got <- string(message.Data()) }))
	for number := range count {
		equal(wait(got), fmt.Sprint(number))
	}
	consuming.Stop()
}

func twoConsumers(run run) {
	const count = 200
	stream := run.stream()
	got := make(chan string, count)
	for range 2 {
		consuming := must(run.consumer(stream).Consume(func(message jetstream.Msg) {
			check(message.Ack())
			got <- string(message.Data())
		}))
		defer consuming.Stop()
	}
	for number := range count {
		must(run.js.PublishAsync(name+".a", fmt.Append(nil, number)))
	}
	seen := map[string]bool{}
	for range count {
		seen[wait(got)] = true
	}
	equal(len(seen), count)
}

func pushConsumer(run run) {
	const count = 100
	stream := run.filled(count)
	consumer := must(stream.CreateOrUpdatePushConsumer(run.context, jetstream.ConsumerConfig{
		Durable: "pushed", AckPolicy: jetstream.AckExplicitPolicy, DeliverSubject: nats.NewInbox(),
		IdleHeartbeat: time.Second, FlowControl: true,
	}))
	got := make(chan string, count)
	consuming := must(consumer.Consume(func(message jetstream.Msg) {
		check(message.Ack())
		got <- string(message.Data())
	}))
	for number := range count {
		equal(wait(got), fmt.Sprint(number))
	}
	consuming.Stop()
}

func oldPackage(run run) {
	run.filled(10)
	js := must(run.connection.JetStream())
	pushed := must(js.SubscribeSync(name+".a", nats.AckExplicit()))
	for number := range 10 {
		message := must(pushed.NextMsg(deadline))
		equal(string(message.Data), fmt.Sprint(number))
		check(message.AckSync())
	}
	check(pushed.Unsubscribe())
	pulled := must(js.PullSubscribe(name+".a", "old"))
	equal(len(must(pulled.Fetch(10, nats.MaxWait(deadline)))), 10)
}
