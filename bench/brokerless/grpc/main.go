// Answers unary calls over gRPC without a broker: what RPC over one is compared with.
//
//	grpc-responder PORT
//
// A request is a decimal number padded with spaces; the reply is its successor, padded to the same
// length. Prints "ready" once it listens on loopback.
package main

import (
	"bytes"
	"context"
	"fmt"
	"log"
	"net"
	"os"
	"strconv"

	"google.golang.org/grpc"
)

// raw carries bytes as they are: what is measured is the transport, not an encoding.
type raw struct{}

func (raw) Name() string                      { return "raw" }
func (raw) Marshal(value any) ([]byte, error) { return *value.(*[]byte), nil }
func (raw) Unmarshal(data []byte, value any) error {
	*value.(*[]byte) = bytes.Clone(data)
	return nil
}

type successor interface{}

func call(_ any, _ context.Context, decode func(any) error, _ grpc.UnaryServerInterceptor) (any, error) {
	body := new([]byte)
	if err := decode(body); err != nil {
		return nil, err
	}
	countUp(*body)
	return body, nil
}

// countUp leaves as it is what does not begin with a number or has no room for the next one.
func countUp(body []byte) {
	digits := 0
	for digits < len(body) && body[digits] >= '0' && body[digits] <= '9' {
		digits++
	}
	value, err := strconv.ParseUint(string(body[:digits]), 10, 63)
	if err != nil {
		return
	}
	var buffer [20]byte
	if next := strconv.AppendUint(buffer[:0], value+1, 10); len(next) <= len(body) {
		copy(body, next)
	}
}

func serve(port string) error {
	listener, err := net.Listen("tcp", net.JoinHostPort("127.0.0.1", port))
	if err != nil {
		return err
	}
	server := grpc.NewServer(grpc.ForceServerCodec(raw{}))
	server.RegisterService(&grpc.ServiceDesc{
		ServiceName: "imori.bench.Successor",
		HandlerType: (*successor)(nil),
		Methods:     []grpc.MethodDesc{{MethodName: "Call", Handler: call}},
	}, struct{}{})
	fmt.Println("ready")
	return server.Serve(listener)
}

func main() {
	if len(os.Args) != 2 {
		log.Fatal("usage: grpc-responder PORT")
	}
	if err := serve(os.Args[1]); err != nil {
		log.Fatal(err)
	}
}
