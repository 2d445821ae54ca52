package kagzi_test

import (
	"encoding/base64"
	"fmt"
	"log"
	"os"

	kagzi "github.com/kagzi/kagzi/sdk"
)

// Workers and clients with the same keys encrypt all payloads; the server sees only ciphertext. To
// rotate a key, first give the new one to all of them, then make it Current.
func ExampleNewAESCodec() {
	// head -c 32 /dev/urandom | base64
	_ = os.Setenv("ORDERS_KEY_2026", "bm90IGEgc2VjcmV0OiB1c2Ugb25lIG9mIHlvdXIgb3c=")
	_ = os.Setenv("ORDERS_KEY_2025", "aGVyZSBpcyB0aGUga2V5IG9mIHRoZSB5ZWFyIHBhc3Q=")
	keys := map[string][]byte{}
	for id, variable := range map[string]string{"orders-2025": "ORDERS_KEY_2025", "orders-2026": "ORDERS_KEY_2026"} {
		key, err := base64.StdEncoding.DecodeString(os.Getenv(variable))
		if err != nil {
			log.Fatal(err)
		}
		keys[id] = key
	}
	codec, err := kagzi.NewAESCodec(kagzi.AESOptions{Keys: keys, Current: "orders-2026", Context: "production"})
	if err != nil {
		log.Fatal(err)
	}
	worker := kagzi.NewWorker(kagzi.WorkerOptions{Queue: "orders", Codec: codec})
	client, err := kagzi.NewClient(kagzi.ClientOptions{Codec: codec})
	if err != nil {
		log.Fatal(err)
	}
	defer client.Close()
	_ = worker // then kagzi.Handle(worker, …) and worker.Run as usual

	// What the server stores for the result of a step; it cannot be decrypted as that of another
	// step.
	charge := kagzi.PayloadInfo{Kind: kagzi.PayloadStep, Start: "the digest of a run's start", Step: "charge"}
	stored, err := codec.Encode(kagzi.Payload{
		Data: []byte(`{"card":"4242"}`), Metadata: map[string]string{"content-type": "application/json"}}, charge)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(len(stored.Data), "bytes,", stored.Metadata["encoding"], "by", stored.Metadata["encryption-key"])
	plain, err := codec.Decode(stored, charge)
	fmt.Println(string(plain.Data), err)
	refund := charge
	refund.Step = "refund"
	_, err = codec.Decode(stored, refund)
	fmt.Println(err)
	// Output:
	// 55 bytes, binary/encrypted by orders-2026
	// {"card":"4242"} <nil>
	// the payload cannot be decrypted: it was encrypted for another run, step or Context, with a different key of this id, or was changed
}
