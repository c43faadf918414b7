package main

import (
	"errors"
	"fmt"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

func createAndDelete(run run) {
	stream := run.filled(10)
	info := must(stream.Info(run.context, jetstream.WithSubjectFilter(">")))
	equal(info.State.Msgs, uint64(10))
	equal(info.State.Subjects, map[string]uint64{name + ".a": 10})
	config := info.Config
	config.MaxMsgs = 5
	stream = must(run.js.UpdateStream(run.context, config))
	equal(must(stream.Info(run.context)).State.FirstSeq, uint64(6))
	check(stream.DeleteMsg(run.context, 7))
	_, err := stream.GetMsg(run.context, 7)
	equal(errors.Is(err, jetstream.ErrMsgNotFound), true)
	equal(string(must(stream.GetMsg(run.context, 8)).Data), "7")
	equal(string(must(stream.GetLastMsgForSubject(run.context, name+".a")).Data), "9")
	check(stream.Purge(run.context, jetstream.WithPurgeKeep(1)))
	equal(must(stream.Info(run.context)).State.Msgs, uint64(1))
	found := false
	names := run.js.StreamNames(run.context)
	for each := range names.Name() {
		found = found || each == name
	}
	check(names.Err())
	equal(found, true)
	equal(must(run.js.StreamNameBySubject(run.context, name+".x")), name)
	check(run.js.DeleteStream(run.context, name))
	_, err = run.js.Stream(run.context, name)
	equal(errors.Is(err, jetstream.ErrStreamNotFound), true)
}

func publish(run run) {
	run.stream()
	ack := must(run.js.Publish(run.context, name+".a", []byte("1"), jetstream.WithMsgID("id")))
	equal([]any{ack.Stream, ack.Sequence, ack.Duplicate}, []any{name, uint64(1), false})
	ack = must(run.js.Publish(run.context, name+".a", []byte("1"), jetstream.WithMsgID("id")))
	equal([]any{ack.Sequence, ack.Duplicate}, []any{uint64(1), true})
	_, err := run.js.Publish(run.context, name+".a", nil, jetstream.WithExpectLastSequence(5))
	var refused *jetstream.APIError
	equal(errors.As(err, &refused), true)
	equal(refused.ErrorCode, jetstream.JSErrCodeStreamWrongLastSequence)
	must(run.js.Publish(run.context, name+".a", nil, jetstream.WithExpectLastSequencePerSubject(1)))
	message := &nats.Msg{Subject: name + ".b", Header: nats.Header{"Several": {"one", "two"}}, Data: []byte("3")}
	equal(must(run.js.PublishMsg(run.context, message)).Sequence, uint64(3))
}

func publishAsync(run run) {
	stream := run.stream()
	const count = 1000
	var acks []jetstream.PubAckFuture
	for number := range count {
		acks = append(acks, must(run.js.PublishAsync(name+".a", fmt.Append(nil, number))))
	}
	for number, ack := range acks {
		select {
		case answer := <-ack.Ok():
			equal(answer.Sequence, uint64(number+1))
		case err := <-ack.Err():
			panic(err)
		}
	}
	equal(must(stream.Info(run.context)).State.Msgs, uint64(count))
}

func errorsOfTheBroker(run run) {
	_, err := run.js.Stream(run.context, name)
	equal(errors.Is(err, jetstream.ErrStreamNotFound), true)
	_, err = run.js.Publish(run.context, name+".a", nil)
	equal(errors.Is(err, jetstream.ErrNoStreamResponse), true)
	stream := run.stream()
	_, err = run.js.CreateStream(run.context, jetstream.StreamConfig{Name: name, Subjects: []string{name}})
	equal(errors.Is(err, jetstream.ErrStreamNameAlreadyInUse), true)
	_, err = stream.Consumer(run.context, "reader")
	equal(errors.Is(err, jetstream.ErrConsumerNotFound), true)
	_, err = stream.UpdateConsumer(run.context, jetstream.ConsumerConfig{Durable: "reader"})
	equal(errors.Is(err, jetstream.ErrConsumerDoesNotExist), true)
	_, err = run.js.KeyValue(run.context, name)
	equal(errors.Is(err, jetstream.ErrBucketNotFound), true)
	info := must(run.js.AccountInfo(run.context))
	equal(info.Streams >= 1, true)
}
