// Requests and replies over gRPC without a broker: what RPC over one is compared with.
//
//	grpc serve ADDRESS                       answers each unary call with its own body
//	grpc call ADDRESS REQUESTERS SECONDS     lock-step: so many connections, each with one call out
//
// A request is 128 bytes that begin with its number; a reply repeats it. The client checks every
// reply and prints one line of JSON.
package main

import (
	"bytes"
	"context"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"log"
	"net"
	"os"
	"slices"
	"strconv"
	"sync"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
)

const (
	bodyBytes = 128
	method    = "/bench.Echo/Call"
)

// raw carries bytes as they are: what is measured is the transport, not an encoding.
type raw struct{}

func (raw) Name() string                     { return "raw" }
func (raw) Marshal(value any) ([]byte, error) { return *value.(*[]byte), nil }
func (raw) Unmarshal(data []byte, value any) error {
	*value.(*[]byte) = bytes.Clone(data)
	return nil
}

type echo interface{}

func call(_ any, _ context.Context, decode func(any) error, _ grpc.UnaryServerInterceptor) (any, error) {
	body := new([]byte)
	return body, decode(body)
}

func serve(address string) error {
	listener, err := net.Listen("tcp", address)
	if err != nil {
		return err
	}
	server := grpc.NewServer(grpc.ForceServerCodec(raw{}))
	server.RegisterService(&grpc.ServiceDesc{
		ServiceName: "bench.Echo",
		HandlerType: (*echo)(nil),
		Methods:     []grpc.MethodDesc{{MethodName: "Call", Handler: call}},
	}, struct{}{})
	return server.Serve(listener)
}

// request calls in lock-step until the time is up and returns how long each call took.
func request(address string, first uint64, until time.Time) ([]time.Duration, error) {
	credentials := grpc.WithTransportCredentials(insecure.NewCredentials())
	connection, err := grpc.NewClient(address, credentials)
	if err != nil {
		return nil, err
	}
	defer connection.Close()
	var took []time.Duration
	body := make([]byte, bodyBytes)
	for number := first; time.Now().Before(until); number++ {
		binary.LittleEndian.PutUint64(body, number)
		reply := new([]byte)
		start := time.Now()
		if err := connection.Invoke(context.Background(), method, &body, reply, grpc.ForceCodec(raw{})); err != nil {
			return nil, err
		}
		took = append(took, time.Since(start))
		if !bytes.Equal(*reply, body) {
			return nil, fmt.Errorf("a reply came for another request than %d", number)
		}
	}
	return took, nil
}

func callAll(address string, requesters int, seconds float64) error {
	until := time.Now().Add(time.Duration(seconds * float64(time.Second)))
	results := make([][]time.Duration, requesters)
	errors := make([]error, requesters)
	var all sync.WaitGroup
	for at := range requesters {
		all.Go(func() { results[at], errors[at] = request(address, uint64(at)<<40, until) })
	}
	all.Wait()
	for _, err := range errors {
		if err != nil {
			return err
		}
	}
	took := slices.Concat(results...)
	slices.Sort(took)
	micros := func(part float64) float64 {
		return float64(took[int(part*float64(len(took)-1))].Nanoseconds()) / 1e3
	}
	return json.NewEncoder(os.Stdout).Encode(map[string]float64{
		"per_second": float64(len(took)) / seconds,
		"p50_us":     micros(0.50),
		"p99_us":     micros(0.99),
	})
}

func run(arguments []string) error {
	switch {
	case len(arguments) == 2 && arguments[0] == "serve":
		return serve(arguments[1])
	case len(arguments) == 4 && arguments[0] == "call":
		requesters, err := strconv.Atoi(arguments[2])
		if err != nil {
			return err
		}
		seconds, err := strconv.ParseFloat(arguments[3], 64)
		if err != nil {
			return err
		}
		return callAll(arguments[1], requesters, seconds)
	}
	return fmt.Errorf("usage: grpc serve ADDRESS | grpc call ADDRESS REQUESTERS SECONDS")
}

func main() {
	if err := run(os.Args[1:]); err != nil {
		log.Fatal(err)
	}
}
