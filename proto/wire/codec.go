// Package wire encodes and decodes gRPC messages for the server and its clients.
package wire

import (
	"google.golang.org/grpc/encoding"
	_ "google.golang.org/grpc/encoding/proto" // registers the standard codec
	"google.golang.org/grpc/mem"
	"google.golang.org/protobuf/proto"
)

// Codec is gRPC's standard codec with better buffer sizes. The standard one uses a buffer of 1 MiB
// for every message above 32 KiB, and clears all of it on writing and on reading. The zero value is
// ready to use.
type Codec struct{}

var (
	standard = encoding.GetCodecV2("proto")
	buffers  = fitting()
)

// fitting returns a pool whose buffers are less than twice as large as needed, from 1 KiB (gRPC
// pools none below) to 8 MiB (about the largest message).
func fitting() mem.BufferPool {
	pool, err := mem.NewBinaryTieredBufferPool(10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21, 22, 23)
	if err != nil {
		panic(err) // the sizes above are valid
	}
	return pool
}

// Name returns the standard codec's name: the encoding is the same.
func (Codec) Name() string { return standard.Name() }

// Marshal encodes a message.
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

// Unmarshal decodes a message.
func (Codec) Unmarshal(data mem.BufferSlice, v any) error {
	whole := Whole(data)
	defer whole.Free()
	return standard.Unmarshal(mem.BufferSlice{whole}, v)
}

// Whole joins a message's bytes into one buffer; the caller frees it.
func Whole(data mem.BufferSlice) mem.Buffer { return data.MaterializeToBuffer(buffers) }
