package kagzi

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"reflect"
	"slices"
	"strings"
	"unicode/utf8"

	kagziv1 "github.com/kagzi/kagzi/proto/kagzi/v1"
	"github.com/kagzi/kagzi/sdk/internal/xaes"
)

// MaxPayload limits the size of an input, an output or a step result to 2 MiB, including the
// codec's overhead and metadata. Above 256 KiB of data the log has a warning.
const MaxPayload = 2 << 20

// largePayload is the size of data that is logged as a warning.
const largePayload = 256 << 10

// warnLarge logs a payload that is better stored elsewhere: each activation of the run transfers it
// whole.
func warnLarge(log *slog.Logger, what string, p *kagziv1.Payload, about ...any) {
	if n := len(p.GetData()); n > largePayload {
		log.Warn("large "+what, append(about, "bytes", n)...)
	}
}

// Payload is encoded user data.
type Payload struct {
	Data     []byte
	Metadata map[string]string // "content-type", "encoding"; a codec adds its own keys
}

// PayloadInfo describes a payload and its owner. It has the same values when the payload is encoded
// and decoded, so a codec can bind a payload to them.
type PayloadInfo struct {
	Kind PayloadKind
	// WorkflowType and ExternalID are set for inputs: the run has no id yet when its input is
	// encoded. The ExternalID of a schedule's run is "", since the input belongs to the schedule.
	WorkflowType string
	ExternalID   string
	// RunID is set for outputs.
	RunID string
	// Start is set for step results and signals. It is a digest of the run's workflow type,
	// external id and stored input. A retry has another run id but the same Start, as it keeps
	// results and signals. A run that continued as new, or was restarted with another input,
	// receives signals of the run before it: those have the Start of the first run.
	Start string
	Step  string // name of the step or signal

	signals string // inputs of a run that receives another run's signals: their Start
}

// scheduled is the prefix of external ids that the server makes for runs of schedules.
const scheduled = "schedule:"

func inputInfo(workflowType, externalID string) PayloadInfo {
	if strings.HasPrefix(externalID, scheduled) {
		externalID = ""
	}
	return PayloadInfo{Kind: PayloadInput, WorkflowType: workflowType, ExternalID: externalID}
}

// startDigest computes PayloadInfo.Start.
func startDigest(workflowType, externalID string, input []byte) string {
	h := sha256.New()
	for _, part := range []string{workflowType, externalID} {
		h.Write(binary.BigEndian.AppendUint32(nil, uint32(len(part))))
		h.Write([]byte(part))
	}
	h.Write(input)
	return hex.EncodeToString(h.Sum(nil))
}

// metaSignals is the metadata key, in the input of a run that receives another run's signals, for
// their Start. A codec that authenticates metadata, as NewAESCodec's does, keeps others from
// changing it.
const metaSignals = "signals-start"

// startOfSignals returns the PayloadInfo.Start of signals to a run. Signals from a client that did
// not know the runs before it have the run's own.
func startOfSignals(own string, input *kagziv1.Payload) string {
	return cmp.Or(input.GetMetadata()[metaSignals], own)
}

// PayloadKind is the kind of a payload.
type PayloadKind string

// Kinds of payloads.
const (
	PayloadInput  PayloadKind = "input"
	PayloadOutput PayloadKind = "output"
	PayloadStep   PayloadKind = "step"
	PayloadSignal PayloadKind = "signal"
)

// Codec transforms payloads between their JSON and what the server stores, for encryption or
// compression. NewAESCodec makes one that encrypts. Encode and Decode are called concurrently.
//
// Decode gets what Encode returned, with the same PayloadInfo. It also gets payloads stored without
// a codec, and empty data where there is no payload. If Decode fails, the run fails: for good if
// the error is NonRetryable, else like an error of the workflow code, so that the run's own Retry
// applies. One exception: if a signal cannot be decoded and the error is NonRetryable, WaitSignal
// returns it as a *StepError, because the sender is at fault.
//
// With a codec, a client reads a run before it sends it a signal or overrides a step, unless it has
// just started the run. It also reads what an earlier call with the same RequestID created, to
// compare inputs.
//
// Two metadata keys belong to Kagzi: "signals-start" in inputs, which a codec must keep, and
// "child_run_id" in results of children, which a codec never sees.
type Codec interface {
	Encode(p Payload, info PayloadInfo) (Payload, error)
	Decode(p Payload, info PayloadInfo) (Payload, error)
}

// jsonMetadata is shared by all payloads and must not be changed.
var jsonMetadata = map[string]string{"content-type": "application/json"}

// pack makes a payload of at most MaxPayload bytes from JSON.
func pack(c Codec, data []byte, info PayloadInfo) (*kagziv1.Payload, error) {
	p := &kagziv1.Payload{Data: data, Metadata: jsonMetadata}
	if c != nil {
		metadata := maps.Clone(jsonMetadata)
		if info.signals != "" {
			metadata[metaSignals], info.signals = info.signals, ""
		}
		coded, err := c.Encode(Payload{Data: data, Metadata: metadata}, info)
		if err != nil {
			return nil, fmt.Errorf("codec: %w", err)
		}
		p.Data, p.Metadata = coded.Data, coded.Metadata
	}
	if n := payloadSize(p); n > MaxPayload {
		return nil, NonRetryable(fmt.Errorf("%d bytes are more than the limit of %d (2 MiB)", n, MaxPayload))
	}
	return p, nil
}

func payloadSize(p *kagziv1.Payload) int {
	n := len(p.GetData())
	for k, v := range p.GetMetadata() {
		n += len(k) + len(v)
	}
	return n
}

func unpack(c Codec, p *kagziv1.Payload, info PayloadInfo) ([]byte, error) {
	if c == nil {
		return p.GetData(), nil
	}
	plain, err := c.Decode(Payload{Data: p.GetData(), Metadata: maps.Clone(p.GetMetadata())}, info)
	if err != nil {
		return nil, fmt.Errorf("codec: %w", err)
	}
	return plain.Data, nil
}

func encode[T any](c Codec, v T, info PayloadInfo) (*kagziv1.Payload, error) {
	data, err := json.Marshal(v)
	if err != nil {
		return nil, NonRetryable(err)
	}
	return pack(c, data, info)
}

// decode decodes a payload into a T; no data gives the zero T. If the JSON does not fit, the error
// is not retryable and names T. A codec's error may be temporary.
func decode[T any](c Codec, p *kagziv1.Payload, info PayloadInfo) (*T, error) {
	data, err := unpack(c, p, info)
	if err != nil {
		return nil, err
	}
	v, err := decodeJSON[T](data)
	if encoding := p.GetMetadata()["encoding"]; err != nil && c == nil && encoding != "" {
		return nil, NonRetryable(fmt.Errorf("cannot be read as %s: it is encoded as %q, and no Codec is set here",
			reflect.TypeFor[T](), encoding))
	}
	return v, err
}

// unchangedByJSON reports that JSON returns the value at p unchanged, so that it need not be
// decoded again. Interfaces are excluded: JSON does not carry their dynamic type.
func unchangedByJSON(p any) bool {
	switch p := p.(type) {
	case *string:
		return utf8.ValidString(*p) // JSON replaces invalid UTF-8
	case *bool, *int, *int8, *int16, *int32, *int64, *uint, *uint8, *uint16, *uint32, *uint64, *float32, *float64:
		return true
	}
	return false
}

func decodeJSON[T any](data []byte) (*T, error) {
	v := new(T)
	if len(bytes.TrimSpace(data)) == 0 {
		return v, nil
	}
	if err := json.Unmarshal(data, v); err != nil {
		return nil, NonRetryable(fmt.Errorf("cannot be read as %s: %w", reflect.TypeFor[T](), err))
	}
	return v, nil
}

// Metadata of an encrypted payload, readable without its key.
const (
	metaEncoding = "encoding"
	metaCipher   = "encryption"
	metaKey      = "encryption-key"     // id of the key
	metaInner    = "encrypted-encoding" // "encoding" of the plaintext, if it has one

	encrypted  = "binary/encrypted"
	cipherName = "XAES-256-GCM"
)

// AESOptions configures an AES codec.
type AESOptions struct {
	Keys    map[string][]byte // by key id, which is not secret; 32 random bytes each
	Current string            // id of the key that encrypts; all keys decrypt
	// Context is authenticated with each payload, as if it were part of the key. Use one for each
	// environment or customer to keep their payloads apart under one key (none).
	Context string
	// AllowPlain accepts payloads that are not encrypted: those from before the codec was
	// introduced, and inputs and signals sent from the command line. It lets everyone who can write
	// to the database insert payloads (false: plain payloads are an error).
	AllowPlain bool
}

// NewAESCodec returns a Codec that encrypts payloads with XAES-256-GCM: AES-256-GCM with a new
// derived key and nonce for each payload, so a key has no usage limit. The server, its database and
// its backups see only ciphertext.
//
// Each payload is bound to its PayloadInfo. It cannot be decrypted as the result of another step,
// in another run, or as the input of another workflow type or external id. There, Decode returns an
// error, which fails the run for good. If only the key is missing, the run's Retry applies, because
// another worker may have it.
//
// To rotate a key, first give the new key to every worker and client, then make it Current. Keep
// the old key as long as there are runs encrypted with it.
//
// Payloads with equal PayloadInfo can be exchanged for each other, so an attacker with access to
// the database can replace a payload with an older one of the same kind: inputs of runs of one type
// without external ids, or of its schedules; signals of the same name to a run; successive results
// of one step.
//
// Not encrypted are names and ids, tags, labels, notes, reasons, times and sizes, and the texts,
// types and stacks of errors, which retry policies and operators need. Do not put secrets into
// errors. The event of a failure handler contains the failed run's input as it was stored,
// encrypted.
//
// Outputs are bound to the run's id, and a capsule is imported under new ids. So outputs in an
// imported capsule, and results of children that had ended, cannot be decrypted. Change the
// workflow type of a schedule only with a client that has the codec.
func NewAESCodec(o AESOptions) (Codec, error) {
	c := &aesCodec{current: o.Current, context: o.Context, allowPlain: o.AllowPlain,
		keys: make(map[string]*xaes.Cipher, len(o.Keys))}
	for id, key := range o.Keys {
		if err := checkName("key", id); err != nil {
			return nil, fmt.Errorf("kagzi: AES codec: %w", err)
		}
		if len(key) != xaes.KeySize {
			return nil, fmt.Errorf("kagzi: AES codec: key %s has %d bytes, want %d", id, len(key), xaes.KeySize)
		}
		x, err := xaes.New(key)
		if err != nil {
			return nil, fmt.Errorf("kagzi: AES codec: %w", err)
		}
		c.keys[id] = x
	}
	if c.keys[o.Current] == nil {
		return nil, fmt.Errorf("kagzi: AES codec: Current is %q, want the id of one of the keys", o.Current)
	}
	return c, nil
}

type aesCodec struct {
	keys       map[string]*xaes.Cipher
	current    string
	context    string
	allowPlain bool
}

// Encode keeps the metadata readable and authenticates it.
func (c *aesCodec) Encode(p Payload, info PayloadInfo) (Payload, error) {
	metadata := maps.Clone(p.Metadata)
	if metadata == nil {
		metadata = map[string]string{}
	}
	if inner := metadata[metaEncoding]; inner != "" {
		metadata[metaInner] = inner
	}
	metadata[metaEncoding], metadata[metaCipher], metadata[metaKey] = encrypted, cipherName, c.current
	data, err := c.keys[c.current].Seal(p.Data, c.binding(metadata, info))
	return Payload{Data: data, Metadata: metadata}, err
}

var (
	errPlain = errors.New(
		"the payload is not encrypted: it was stored without the codec (AESOptions.AllowPlain accepts such payloads)")
	errAlien = errors.New(
		"the payload cannot be decrypted: it was encrypted for another run, step or Context, with a different key of this id, or was changed")
)

// Decode returns only what was encrypted under the same info.
func (c *aesCodec) Decode(p Payload, info PayloadInfo) (Payload, error) {
	if p.Metadata[metaEncoding] != encrypted {
		if c.allowPlain {
			return p, nil
		}
		return Payload{}, NonRetryable(errPlain)
	}
	key := c.keys[p.Metadata[metaKey]]
	if key == nil {
		return Payload{}, fmt.Errorf("the payload is encrypted by key %q, which the codec does not have",
			p.Metadata[metaKey])
	}
	data, err := key.Open(p.Data, c.binding(p.Metadata, info))
	if err != nil {
		return Payload{}, NonRetryable(errAlien)
	}
	metadata := maps.Clone(p.Metadata)
	for _, name := range []string{metaEncoding, metaCipher, metaKey, metaInner} {
		delete(metadata, name)
	}
	if inner := p.Metadata[metaInner]; inner != "" {
		metadata[metaEncoding] = inner
	}
	return Payload{Data: data, Metadata: metadata}, nil
}

// binding returns the authenticated data of a ciphertext. Each part is preceded by its length, so
// that different sequences never encode alike.
func (c *aesCodec) binding(metadata map[string]string, info PayloadInfo) []byte {
	parts := []string{"kagzi codec 1", c.context, string(info.Kind), info.WorkflowType, info.ExternalID, info.RunID,
		info.Start, info.Step}
	for _, name := range slices.Sorted(maps.Keys(metadata)) {
		parts = append(parts, name, metadata[name])
	}
	var all []byte
	for _, part := range parts {
		all = binary.BigEndian.AppendUint32(all, uint32(len(part)))
		all = append(all, part...)
	}
	return all
}
