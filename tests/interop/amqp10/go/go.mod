module imori.invalid/interop/amqp10

go 1.25

require github.com/Azure/go-amqp v1.7.0 // indirect
