// Package wire is how both ends write the messages of the contract.
package wire

import (
	"google.golang.org/grpc/encoding"
	_ "google.golang.org/grpc/encoding/proto" // registers the codec that this one goes by
	"google.golang.org/grpc/mem"
	"google.golang.org/protobuf/proto"
)

// Codec is gRPC's own codec for messages, with buffers that fit: of that one every message above 32
// KiB takes a buffer of 1 MiB, and has all of it cleared, once where it is written and once where
// it is read. The zero value is ready.
type Codec struct{}

var (
	standard = encoding.GetCodecV2("proto")
	buffers  = fitting()
)

// fitting is a pool of buffers that are less than twice as large as what they are for, from 1 KiB,
// below which gRPC takes none, to 8 MiB, about what a message may have.
func fitting() mem.BufferPool {
	pool, err := mem.NewBinaryTieredBufferPool(10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21, 22, 23)
	if err != nil {
		panic(err) // the sizes are those above
	}
	return pool
}

// Name is that of gRPC's own: what is sent is the same.
func (Codec) Name() string { return standard.Name() }

// Marshal writes a message.
func (Codec) Marshal(v any) (mem.BufferSlice, error) {
	message, ok := v.(proto.Message)
	if !ok {
		return standard.Marshal(v)
	}
	size := proto.Size(message)
	if mem.IsBelowBufferPoolingThreshold(size) {
		return standard.Marshal(v)
	}
	buffer := buffers.Get(size)
	if _, err := (proto.MarshalOptions{UseCachedSize: true}).MarshalAppend((*buffer)[:0], message); err != nil {
		buffers.Put(buffer)
		return nil, err
	}
	return mem.BufferSlice{mem.NewBuffer(buffer, buffers)}, nil
}

// Unmarshal reads a message.
func (Codec) Unmarshal(data mem.BufferSlice, v any) error {
	whole := Whole(data)
	defer whole.Free()
	return standard.Unmarshal(mem.BufferSlice{whole}, v)
}

// Whole is a message's bytes in one piece, to be freed.
func Whole(data mem.BufferSlice) mem.Buffer { return data.MaterializeToBuffer(buffers) }
