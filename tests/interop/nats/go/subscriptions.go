package main

import (
	"errors"
	"slices"
	"strconv"

	"github.com/nats-io/nats.go"
)

func queueGroups() {
	const members, count = 3, 600
	publisher := connect()
	plainConnection := connect()
	plain := subscribe(plainConnection, name)
	got := make(chan [2]int, 2*count)
	var connections []*nats.Conn
	for _, group := range []string{"first", "second"} {
		for range members {
			index := len(connections)
			connection := connect()
			must(connection.QueueSubscribe(name, group, func(message *nats.Msg) {
				got <- [2]int{index, must(strconv.Atoi(string(message.Data)))}
			}))
			check(connection.Flush())
			connections = append(connections, connection)
		}
	}
	for number := range count {
		publish(publisher, name, strconv.Itoa(number))
	}
	share := make([]int, len(connections))
	numbers := [2][]int{}
	for range 2 * count {
		pair := wait(got)
		share[pair[0]]++
		numbers[pair[0]/members] = append(numbers[pair[0]/members], pair[1])
	}
	bodies(plain, count)
	for group := range numbers {
		slices.Sort(numbers[group])
		for number := range count {
			equal(numbers[group][number], number)
		}
	}
	for _, taken := range share {
		equal(taken > count/members/4, true)
	}
	for _, connection := range connections {
		check(connection.Flush())
	}
	equal(len(got), 0)
}

func unsubscribe() {
	publisher, subscriber := connect(), connect()
	left, stays := subscribe(subscriber, name), subscribe(subscriber, name)
	check(left.Unsubscribe())
	check(subscriber.Flush())
	publish(publisher, name, "after")
	equal(bodies(stays, 1), []string{"after"})
	_, err := left.NextMsg(deadline)
	equal(errors.Is(err, nats.ErrBadSubscription), true)
	equal(subscriber.Stats().InMsgs, uint64(1))
}

func unsubscribeAfterANumber() {
	connection := connect()
	early := subscribe(connection, name+".early")
	check(early.AutoUnsubscribe(5))
	late := subscribe(connection, name+".late")
	publish(connection, name+".late", "1", "2", "3")
	equal(bodies(late, 3), []string{"1", "2", "3"})
	check(late.AutoUnsubscribe(5))
	over := subscribe(connection, name+".over")
	publish(connection, name+".over", "1", "2", "3")
	equal(bodies(over, 3), []string{"1", "2", "3"})
	check(over.AutoUnsubscribe(2))
	for _, way := range []string{".early", ".late", ".over"} {
		publish(connection, name+way, "4", "5", "6", "7", "8", "9", "10")
	}
	check(connection.Flush())
	equal(bodies(early, 5), []string{"4", "5", "6", "7", "8"})
	equal(bodies(late, 2), []string{"4", "5"})
	// The client drops what is over the number; what counts is what the broker sent.
	equal(connection.Stats().InMsgs, uint64(3+3+5+2))
}

func drainASubscription() {
	publisher, subscriber := connect(), connect()
	const count = 500
	got := make(chan string, count+1)
	begin := make(chan bool)
	drained := must(subscriber.Subscribe(name, func(message *nats.Msg) {
		<-begin
		got <- string(message.Data)
	}))
	closed := drained.StatusChanged(nats.SubscriptionClosed)
	other := subscribe(subscriber, name)
	for number := range count {
		publish(publisher, name, strconv.Itoa(number))
	}
	check(publisher.Flush())
	check(drained.Drain())
	check(subscriber.Flush())
	publish(publisher, name, "too late")
	close(begin)
	for number := range count {
		equal(wait(got), strconv.Itoa(number))
	}
	wait(closed)
	equal(bodies(other, count+1)[count], "too late")
	equal(len(got), 0)
}

func drainAConnection() {
	observer, publisher := connect(), connect()
	const count = 500
	answers := subscribe(observer, name+".out")
	closed := make(chan bool, 1)
	worker := connect(nats.ClosedHandler(func(*nats.Conn) { closed <- true }))
	begin := make(chan bool)
	must(worker.Subscribe(name+".in", func(message *nats.Msg) {
		<-begin
		publish(worker, name+".out", string(message.Data))
	}))
	check(worker.Flush())
	for number := range count {
		publish(publisher, name+".in", strconv.Itoa(number))
	}
	check(publisher.Flush())
	check(worker.Flush())
	check(worker.Drain())
	close(begin)
	for number := range count {
		equal(bodies(answers, 1), []string{strconv.Itoa(number)})
	}
	wait(closed)
	equal(worker.IsClosed(), true)
}
