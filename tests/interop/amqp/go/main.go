// Conversations of amqp091-go with a broker, one a scenario.
//
//	driver-go SCENARIO URL NAME
//
// A scenario ends well by returning and badly by panicking; waiting is always for an event.
package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"reflect"
	"strconv"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"
)

const deadline = 100 * time.Second

var scenarios = map[string]func(Run){
	"confirms":             confirms,
	"mandatory_return":     mandatoryReturn,
	"prefetch_and_requeue": prefetchAndRequeue,
	"direct_reply_to":      directReplyTo,
	"transactions":         transactions,
	"dead_letters":         deadLetters,
	"headers":              headers,
	"exclusive_queue":      exclusiveQueue,
	"large_body":           largeBody,
	"cancelled":            cancelled,
	"restart":              restart,
}

// Run is what every scenario needs: channels of connections to the broker, and a name nobody has.
type Run struct {
	url, name string
}

func main() {
	time.AfterFunc(deadline, func() { panic("it hangs") })
	scenarios[os.Args[1]](Run{os.Args[2], os.Args[3]})
}

// channel opens a channel on a connection of its own.
func (run Run) channel() *amqp.Channel {
	return must(must(amqp.Dial(run.url)).Channel())
}

// declare makes a queue with the name of the run and, behind it, what tells it from others.
func (run Run) declare(channel *amqp.Channel, more string, arguments amqp.Table) string {
	return must(channel.QueueDeclare(run.name+more, false, false, false, false, arguments)).Name
}

func publish(channel *amqp.Channel, queue string, message amqp.Publishing) {
	check(channel.PublishWithContext(context.Background(), "", queue, false, false, message))
}

func consume(channel *amqp.Channel, queue string, noAck bool) <-chan amqp.Delivery {
	return must(channel.Consume(queue, "", noAck, false, false, false, nil))
}

// ready tells how many messages of a queue are ready.
func ready(channel *amqp.Channel, queue string) int {
	return must(channel.QueueDeclarePassive(queue, false, false, false, false, nil)).Messages
}

func confirms(run Run) {
	channel := run.channel()
	check(channel.ExchangeDeclare(run.name, "topic", true, false, false, false, nil))
	must(channel.QueueDeclare(run.name, true, false, false, false, nil))
	check(channel.QueueBind(run.name, "number.*", run.name, false, nil))
	check(channel.Confirm(false))
	for number := range 100 {
		text := strconv.Itoa(number)
		message := amqp.Publishing{Body: []byte(text), DeliveryMode: amqp.Persistent}
		confirm := must(channel.PublishWithDeferredConfirmWithContext(
			context.Background(), run.name, "number."+text, false, false, message))
		expect(confirm.Wait(), true)
	}
	arrived := consume(channel, run.name, false)
	for number := range 100 {
		message := <-arrived
		expect(string(message.Body), strconv.Itoa(number))
		expect(message.Redelivered, false)
		check(message.Ack(false))
	}
	expect(ready(channel, run.name), 0)
}

func mandatoryReturn(run Run) {
	channel := run.channel()
	check(channel.Confirm(false))
	returned := channel.NotifyReturn(make(chan amqp.Return, 1))
	confirmed := channel.NotifyPublish(make(chan amqp.Confirmation, 1))
	message := amqp.Publishing{Body: []byte("back")}
	check(channel.PublishWithContext(context.Background(), "", run.name, true, false, message))
	expect((<-confirmed).Ack, true)
	select {
	case back := <-returned:
		expect(int(back.ReplyCode), 312)
		expect(back.ReplyText, "NO_ROUTE")
		expect(string(back.Body), "back")
	default:
		panic("it has to be returned before it is confirmed")
	}
}

func prefetchAndRequeue(run Run) {
	channel := run.channel()
	check(channel.Qos(2, 0, false))
	queue := run.declare(channel, "", nil)
	for number := range 4 {
		publish(channel, queue, amqp.Publishing{Body: []byte(strconv.Itoa(number))})
	}
	arrived := consume(channel, queue, false)
	first, second := <-arrived, <-arrived
	expect(ready(channel, queue), 2)
	check(first.Nack(false, true))
	again := <-arrived
	expect(string(again.Body), "0")
	expect(again.Redelivered, true)
	check(second.Ack(false))
	check(again.Ack(false))
	expect(string((<-arrived).Body), "2")
	expect(string((<-arrived).Body), "3")
}

func directReplyTo(run Run) {
	requester, responder := run.channel(), run.channel()
	queue := run.declare(responder, "", nil)
	requests := consume(responder, queue, true)
	go func() {
		for request := range requests {
			publish(responder, request.ReplyTo, amqp.Publishing{
				Body: append(request.Body, request.Body...), CorrelationId: request.CorrelationId,
			})
		}
	}()
	replies := consume(requester, "amq.rabbitmq.reply-to", true)
	for number := range 10 {
		text := strconv.Itoa(number)
		publish(requester, queue, amqp.Publishing{
			Body: []byte(text), ReplyTo: "amq.rabbitmq.reply-to", CorrelationId: text,
		})
		reply := <-replies
		expect(string(reply.Body), text+text)
		expect(reply.CorrelationId, text)
	}
}

func transactions(run Run) {
	channel, reader := run.channel(), run.channel()
	queue := run.declare(channel, "", nil)
	check(channel.Tx())
	publish(channel, queue, amqp.Publishing{Body: []byte("dropped")})
	check(channel.TxRollback())
	publish(channel, queue, amqp.Publishing{Body: []byte("kept")})
	expect(ready(reader, queue), 0)
	check(channel.TxCommit())
	expect(ready(reader, queue), 1)
}

func deadLetters(run Run) {
	channel := run.channel()
	dead := run.declare(channel, ".dead", nil)
	queue := run.declare(channel, "", amqp.Table{
		"x-dead-letter-exchange": "", "x-dead-letter-routing-key": dead, "x-max-length": 10,
	})
	publish(channel, queue, amqp.Publishing{Body: []byte("bad")})
	check((<-consume(channel, queue, false)).Reject(false))
	corpse := <-consume(channel, dead, true)
	death := corpse.Headers["x-death"].([]any)[0].(amqp.Table)
	expect(death["queue"], any(queue))
	expect(death["reason"], any("rejected"))
	expect(death["count"], any(int64(1)))
	expect(death["exchange"], any(""))
	expect(death["routing-keys"], any([]any{queue}))
	expect(corpse.Headers["x-first-death-queue"], any(queue))
}

func headers(run Run) {
	channel := run.channel()
	queue := run.declare(channel, "", nil)
	sent := amqp.Table{
		"text":    "é",
		"true":    true,
		"byte":    int8(-5),
		"short":   int16(-5),
		"int":     int32(-5),
		"long":    int64(1) << 40,
		"float":   float32(2.5),
		"double":  2.5,
		"decimal": amqp.Decimal{Scale: 2, Value: 125},
		"time":    time.Unix(1714979289, 0),
		"bytes":   []byte{0, 255},
		"nothing": nil,
		"table":   amqp.Table{"a": amqp.Table{"b": []any{int32(1), "c"}}},
		"list":    []any{int32(1), "a", amqp.Table{"b": nil}},
	}
	publish(channel, queue, amqp.Publishing{Headers: sent})
	came := (<-consume(channel, queue, true)).Headers
	for key := range sent {
		if !reflect.DeepEqual(came[key], sent[key]) {
			panic(fmt.Sprintf("`%s` came as %#v", key, came[key]))
		}
	}
	expect(len(came), len(sent))
}

func exclusiveQueue(run Run) {
	owner, other := run.channel(), run.channel()
	must(owner.QueueDeclare(run.name, false, false, true, false, nil))
	_, err := other.QueueDeclarePassive(run.name, false, false, false, false, nil)
	expect(codeOf(err), amqp.ResourceLocked)
	auto := run.name + ".auto"
	must(owner.QueueDeclare(auto, false, true, false, false, nil))
	must(owner.Consume(auto, "tag", true, false, false, false, nil))
	check(owner.Cancel("tag", false))
	_, err = owner.QueueDeclarePassive(auto, false, true, false, false, nil)
	expect(codeOf(err), amqp.NotFound)
}

func largeBody(run Run) {
	channel := run.channel()
	queue := run.declare(channel, "", nil)
	body := make([]byte, 1_000_000)
	for at := range body {
		body[at] = byte(at % 251)
	}
	publish(channel, queue, amqp.Publishing{Body: body})
	expect(bytes.Equal((<-consume(channel, queue, true)).Body, body), true)
}

func cancelled(run Run) {
	channel, other := run.channel(), run.channel()
	queue := run.declare(channel, "", nil)
	cancels := channel.NotifyCancel(make(chan string, 1))
	arrived := must(channel.Consume(queue, "tag", true, false, false, false, nil))
	must(other.QueueDelete(queue, false, false, false))
	expect(<-cancels, "tag")
	_, open := <-arrived
	expect(open, false)
}

func restart(run Run) {
	connection := must(amqp.DialConfig(run.url, amqp.Config{Recovery: &amqp.Recovery{}}))
	channel := must(connection.Channel())
	must(channel.QueueDeclare(run.name, true, false, false, false, nil))
	check(channel.Confirm(false))
	arrived := consume(channel, run.name, false)
	publish(channel, run.name, amqp.Publishing{Body: []byte("before"), DeliveryMode: amqp.Persistent})
	<-arrived
	fmt.Println("ready")
	again := <-arrived
	expect(string(again.Body), "before")
	expect(again.Redelivered, true)
	check(again.Ack(false))
	publish(channel, run.name, amqp.Publishing{Body: []byte("after")})
	expect(string((<-arrived).Body), "after")
}

func codeOf(err error) int {
	var refusal *amqp.Error
	if !errors.As(err, &refusal) {
		panic(fmt.Sprintf("it was not refused: %v", err))
	}
	return refusal.Code
}

func expect[T any](came, wanted T) {
	if !reflect.DeepEqual(came, wanted) {
		panic(fmt.Sprintf("%#v came, and not %#v", came, wanted))
	}
}

func check(err error) {
	if err != nil {
		panic(err)
	}
}

func must[T any](value T, err error) T {
	check(err)
	return value
}
