package wire_test

import (
	"bytes"
	"testing"

	"google.golang.org/grpc/mem"
	"google.golang.org/protobuf/proto"

	kagziv1 "github.com/kagzi/kagzi/proto/kagzi/v1"
	"github.com/kagzi/kagzi/proto/wire"
)

func TestCodecRoundTrip(t *testing.T) {
	for _, size := range []int{0, 1, 1000, 1 << 10, 33 << 10, 1 << 20, 3 << 20, 9 << 20} {
		sent := &kagziv1.Payload{Data: bytes.Repeat([]byte{7}, size),
			Metadata: map[string]string{"content-type": "application/json"}}
		written, err := wire.Codec{}.Marshal(sent)
		if err != nil {
			t.Fatal(err)
		}
		plain, err := proto.Marshal(sent)
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(written.Materialize(), plain) {
			t.Errorf("%d bytes were written otherwise than by gRPC's own codec", size)
		}
		half := len(plain) / 2
		for name, frames := range map[string]mem.BufferSlice{
			"one frame": written, "two frames": {mem.SliceBuffer(plain[:half]), mem.SliceBuffer(plain[half:])},
		} {
			var got kagziv1.Payload
			if err := (wire.Codec{}).Unmarshal(frames, &got); err != nil || !proto.Equal(&got, sent) {
				t.Errorf("%d bytes in %s were read as %d (%v)", size, name, len(got.Data), err)
			}
		}
		written.Free()
	}
}

func TestBuffersAreLessThanTwiceTheMessage(t *testing.T) {
	for _, size := range []int{2 << 10, 5 << 10, 33 << 10, 65 << 10, 600 << 10, 3 << 20} {
		written, err := wire.Codec{}.Marshal(&kagziv1.Payload{Data: make([]byte, size)})
		if err != nil {
			t.Fatal(err)
		}
		if room := cap(written[0].ReadOnlyData()); len(written) != 1 || room > 2*written.Len() {
			t.Errorf("a message of %d bytes took %d buffers, the first of %d bytes", written.Len(), len(written), room)
		}
		written.Free()
	}
}
