// Package proto holds the wire contract: kagzi/v1/*.proto and, beside them, the Go code made from them.
//
// The fields that stand there are fixed for good. New ones take numbers from 100 up; nothing is
// renumbered or dropped. names.go lists the calls whose operation has another name in the engine.
package proto

//go:generate go run ./gen
