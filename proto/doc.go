// Package proto holds the wire contract: kagzi/v1/*.proto and the Go code generated from them.
//
// Existing fields never change. New fields are numbered from 100; no field is renumbered or
// removed. names.go lists the calls whose operation has another name in the engine.
package proto

//go:generate go run ./gen
