// Package amqp10 names the client whose own tests are compiled from here.
package amqp10

import _ "github.com/Azure/go-amqp"
