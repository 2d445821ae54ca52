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

// MaxPayload is the size limit, in bytes, of an input, an output or a step's result, after the
// codec and with the metadata. Past 256 KiB of data the log has a warning.
const MaxPayload = 2 << 20

// largePayload is how many bytes of data are worth a warning.
const largePayload = 256 << 10

// warnLarge tells of a payload that had better be kept elsewhere: it is stored, and sent to whoever
// takes the run up, whole.
func warnLarge(log *slog.Logger, what string, p *kagziv1.Payload, about ...any) {
	if n := len(p.GetData()); n > largePayload {
		log.Warn("large "+what, append(about, "bytes", n)...)
	}
}

// Payload is encoded user data on its way to the server or back.
type Payload struct {
	Data     []byte
	Metadata map[string]string // "content-type", "encoding"; a codec adds its own
}

// PayloadInfo says what a payload is, and whose: all that is known both where it is encoded and
// wherever it may be decoded, so that a codec can bind the one to the other.
type PayloadInfo struct {
	Kind PayloadKind
	// WorkflowType and ExternalID are the run's, for inputs: when an input is encoded its run has
	// no id yet. The external id of a schedule's run is left out, for the input is the schedule's.
	WorkflowType string
	ExternalID   string
	// RunID is of outputs.
	RunID string
	// Start is of results of steps and of signals: a digest of what the run was started with, which
	// are its workflow type, its external id and its stored input. A retry of the run has another
	// id, but keeps its start together with results and signals. A run that has continued as new,
	// or was restarted with another input, takes the signals of the one before it: theirs have the
	// start of the first.
	Start string
	Step  string // name, for results of steps; of a signal the signal's name

	signals string // for the input of a run that takes the signals of another: the start that they have
}

// scheduled begins the external ids that a server makes for runs of a schedule.
const scheduled = "schedule:"

func inputInfo(workflowType, externalID string) PayloadInfo {
	if strings.HasPrefix(externalID, scheduled) {
		externalID = ""
	}
	return PayloadInfo{Kind: PayloadInput, WorkflowType: workflowType, ExternalID: externalID}
}

// startDigest is PayloadInfo.Start.
func startDigest(workflowType, externalID string, input []byte) string {
	h := sha256.New()
	for _, part := range []string{workflowType, externalID} {
		h.Write(binary.BigEndian.AppendUint32(nil, uint32(len(part))))
		h.Write([]byte(part))
	}
	h.Write(input)
	return hex.EncodeToString(h.Sum(nil))
}

// metaSignals is where the input of a run that takes the signals of another says what start they
// have. A codec that binds the metadata to the payload, as that of NewAESCodec does, keeps anybody
// from giving the run the signals of still others.
const metaSignals = "signals-start"

// startOfSignals is PayloadInfo.Start of the signals that a run takes. Those that came from a
// client which did not know of the runs before it have the run's own.
func startOfSignals(own string, input *kagziv1.Payload) string {
	return cmp.Or(input.GetMetadata()[metaSignals], own)
}

// PayloadKind is one of "input", "output", "step" and "signal".
type PayloadKind string

// The kinds of payloads.
const (
	PayloadInput  PayloadKind = "input"
	PayloadOutput PayloadKind = "output"
	PayloadStep   PayloadKind = "step"
	PayloadSignal PayloadKind = "signal"
)

// Codec transforms every payload between its JSON and what the server stores: encryption,
// compression. Decode gets what Encode returned and the same PayloadInfo, and also what others have
// stored without a codec, with no data at all where there is none. Both are called from many
// goroutines at once. An error of Decode that is NonRetryable blames the payload: of a signal that
// is a *StepError for the code. Any other payload that cannot be decoded fails the run: for good if
// the error is NonRetryable, and else like an error of its code, so that the run's own Retry
// applies. Clients that have a codec read a run before they send it a signal or override its steps,
// unless they have just started it; and what an earlier call with the same RequestID has made, to
// compare the inputs. The metadata "child_run_id" is Kagzi's own in what a parent has of a child: a
// codec never sees it there. "signals-start" is Kagzi's own, too, in inputs: a codec is to keep it.
//
// NewAESCodec makes a codec that encrypts.
type Codec interface {
	Encode(p Payload, info PayloadInfo) (Payload, error)
	Decode(p Payload, info PayloadInfo) (Payload, error)
}

// jsonMetadata is shared by all payloads and never written to.
var jsonMetadata = map[string]string{"content-type": "application/json"}

// pack makes JSON into a payload of at most MaxPayload bytes.
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

// decode reads a payload as a T. No data at all is the zero T. That the data does not fit is a
// non-retryable error which names T; a codec's error may pass.
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

// unchangedByJSON says that what is read back from the JSON of the value at p is that value, so
// that it need not be read back. An interface is: JSON does not carry what stands in it.
func unchangedByJSON(p any) bool {
	switch p := p.(type) {
	case *string:
		return utf8.ValidString(*p) // of any other the JSON carries something else
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

// What the metadata of an encrypted payload says, for people who look at a run without its keys.
const (
	metaEncoding = "encoding"
	metaCipher   = "encryption"
	metaKey      = "encryption-key"     // the id of the key
	metaInner    = "encrypted-encoding" // the encoding of what is inside, where it has one

	encrypted  = "binary/encrypted"
	cipherName = "XAES-256-GCM"
)

// AESOptions say which keys an AES codec has.
type AESOptions struct {
	Keys    map[string][]byte // by their ids, which everybody sees; 32 random bytes each
	Current string            // the id of the one that encrypts; all of them decrypt
	// Context is bound to each payload too, as if it were part of the key: one for each environment
	// or customer keeps their payloads apart under one key (none).
	Context string
	// AllowPlain lets Decode take payloads that are not encrypted: those of before there was a
	// codec, and those of people who start runs and signal from the command line. Whoever can write
	// to the database can then put in a payload of their own (false: such a payload is an error).
	AllowPlain bool
}

// NewAESCodec is a Codec that encrypts payloads with AES-256-GCM, by a fresh key and nonce for each
// (XAES-256-GCM), so that a key need not be changed because of how much it has encrypted. The
// server, its database and its backups hold ciphertext alone.
//
// A payload is bound to what PayloadInfo says of it. It cannot be read in the place of another: not
// as the result of another step, nor in another run, nor as the input of another workflow type or
// external id. Decode gives back what was encrypted there, or an error, which fails the run: for
// good, unless the key is not there, for another worker may have it, and the run has a Retry. So
// give a new key to every worker and client before any of them makes it the current one, and keep
// an old one as long as there are runs that it has encrypted.
//
// What cannot be told apart: inputs of runs of one type without external ids, or of one type's
// schedules; several signals of one name to a run; results that one step of a run had one after the
// other. An older one of them can be given for a newer one.
//
// Not encrypted are the names and ids of everything, tags, labels, notes, reasons, times, sizes,
// and the texts, types and stacks of errors, which retry policies and people look at: do not put
// secrets into an error. A failure handler's event holds the failed run's input as it was stored.
//
// The output of a run is bound to the run's id. A capsule is imported under new ids, so that
// outputs that it holds, and results of children that had ended, cannot be read there. The type of
// a schedule is to be changed by a client that has the codec.
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

// Encode keeps the metadata readable, and binds it to the ciphertext.
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
		"the payload is not encrypted: somebody without the codec has stored it (AESOptions.AllowPlain takes such ones)")
	errAlien = errors.New(
		"the payload cannot be decrypted: it was encrypted for another place, in another context, or by another key of this id, or it has been changed")
)

// Decode never returns anything but what was encrypted under the same info.
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

// binding is what a ciphertext is authenticated together with. Each part stands behind its length,
// so that no two sequences are the same.
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
