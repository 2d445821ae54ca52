// Package hook verifies deliveries to hooks, and tells what they are: their event, their id, and
// which of them are the same.
package hook

import (
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/kagzi/kagzi/engine"
)

// Headers of deliveries.
const (
	githubSignature = "X-Hub-Signature-256"
	githubEvent     = "X-GitHub-Event"
	githubDelivery  = "X-GitHub-Delivery"
	stripeSignature = "Stripe-Signature"
	plainSecret     = "Kagzi-Hook-Secret"
	plainDelivery   = "Idempotency-Key"
)

const (
	// MaxAge is how far the time of a Stripe signature may be from the server's clock.
	MaxAge = 5 * time.Minute

	maxStripeParts = 16  // of one signature header; a rotation at the sender gives two
	maxDelivery    = 180 // bytes of a delivery's id: with the hook's name before it, it is an external id
	maxEvent       = 100
)

// Delivery is a request to a hook as it arrived.
type Delivery struct {
	Header http.Header
	Body   []byte
}

// Decoy returns a hook in place of one that does not exist, so that a delivery to it is checked like
// any other. The caller refuses the delivery whatever Verify says.
func Decoy() engine.Hook { return engine.Hook{Scheme: engine.HookGitHub, Secret: decoySecret} }

// decoySecret is tried where a hook has no second secret.
var decoySecret = rand.Text()

// Verify reports whether one of the hook's secrets that are valid now signed the delivery. For every
// hook it computes two HMACs of the body, and compares in constant time, so that its time tells
// nothing about the hook. Age is set for a Stripe signature whose time is more than MaxAge away.
func Verify(h *engine.Hook, d *Delivery, now time.Time) (ok bool, age time.Duration) {
	valid := h.Secrets(now)
	for i, secret := range append(valid, decoySecret)[:2] {
		ok = isSigned(h.Scheme, secret, d) && i < len(valid) || ok
	}
	if ok && h.Scheme == engine.HookStripe {
		at, _ := stripeParts(d)
		seconds, _ := strconv.ParseInt(at, 10, 64) // stripeParts has checked it
		if age = now.Sub(time.Unix(seconds, 0)); age.Abs() <= MaxAge {
			age = 0
		}
	}
	return ok, age
}

// isSigned reports whether the secret signed the delivery.
func isSigned(scheme engine.HookScheme, secret string, d *Delivery) (ok bool) {
	at, signatures := stripeParts(d)
	mac := hmac.New(sha256.New, []byte(secret))
	if scheme == engine.HookStripe {
		mac.Write([]byte(at + "."))
	}
	mac.Write(d.Body)
	sum := mac.Sum(nil)
	switch scheme {
	case engine.HookGitHub:
		text, prefixed := strings.CutPrefix(single(d.Header, githubSignature), "sha256=")
		return hmac.Equal(sum, decoded(text)) && prefixed
	case engine.HookStripe:
		for _, text := range signatures {
			ok = hmac.Equal(sum, decoded(text)) || ok
		}
	case engine.HookPlain:
		given, want := sha256.Sum256([]byte(plainSecretOf(d.Header))), sha256.Sum256([]byte(secret))
		ok = subtle.ConstantTimeCompare(given[:], want[:]) == 1
	}
	return ok
}

// plainSecretOf returns the secret that a delivery shows; empty if it shows none, or several.
func plainSecretOf(h http.Header) string {
	if len(h.Values(plainSecret)) > 0 {
		return single(h, plainSecret)
	}
	scheme, text, _ := strings.Cut(single(h, "Authorization"), " ")
	if !strings.EqualFold(scheme, "bearer") {
		return ""
	}
	return text
}

// stripeParts returns the time and the signatures of a delivery; none if the header is malformed.
func stripeParts(d *Delivery) (at string, signatures []string) {
	parts := strings.Split(single(d.Header, stripeSignature), ",")
	if len(parts) > maxStripeParts {
		return "", nil
	}
	for _, part := range parts {
		switch name, value, _ := strings.Cut(part, "="); name {
		case "t":
			if at != "" {
				return "", nil
			}
			at = value
		case "v1":
			signatures = append(signatures, value)
		}
	}
	if _, err := strconv.ParseInt(at, 10, 64); err != nil {
		return "", nil
	}
	return at, signatures
}

// single returns the value of a header that occurs once.
func single(h http.Header, name string) string {
	if values := h.Values(name); len(values) == 1 {
		return values[0]
	}
	return ""
}

// decoded returns the bytes of a signature; nil, which no HMAC equals, if it is not hexadecimal.
func decoded(text string) []byte {
	raw, err := hex.DecodeString(text)
	if err != nil {
		return nil
	}
	return raw
}

// About is what a verified delivery says of itself.
type About struct {
	Event string // empty: unknown
	ID    string // of the delivery, given by the sender; empty: none
	// Request is the same for deliveries that are the same: see Describe.
	Request string
}

// Describe returns what a verified delivery is. Two deliveries to a hook with the same Request or the
// same ID are one.
//
//   - Request is made from the body, because GitHub signs nothing else: a body that is sent again
//     under another X-GitHub-Delivery is the same delivery.
//   - A plain delivery with an Idempotency-Key has a Request made from that key: the sender knows
//     the secret itself, and may mean two runs by two equal bodies.
//   - Stripe's id and event are in the body, which is signed. Stripe may send an event again with
//     another body.
func Describe(h *engine.Hook, d *Delivery) (a About, err error) {
	identity := d.Body
	switch h.Scheme {
	case engine.HookGitHub:
		a.Event, a.ID = single(d.Header, githubEvent), single(d.Header, githubDelivery)
	case engine.HookStripe:
		var event struct{ ID, Type string }
		if json.Unmarshal(d.Body, &event) == nil {
			a.Event, a.ID = event.Type, event.ID
		}
	case engine.HookPlain:
		if a.ID = single(d.Header, plainDelivery); a.ID != "" {
			identity = []byte(a.ID)
		}
	}
	if err := checkHeader("event", a.Event, maxEvent); err != nil {
		return About{}, err
	}
	if err := checkHeader("delivery id", a.ID, maxDelivery); err != nil {
		return About{}, err
	}
	digest := sha256.New()
	digest.Write(h.ID[:])
	digest.Write(identity)
	a.Request = "hook:" + base64.RawURLEncoding.EncodeToString(digest.Sum(nil))
	return a, nil
}

func checkHeader(what, text string, most int) error {
	if len(text) > most {
		return engine.Invalid(what, "has %d bytes, at most %d are allowed", len(text), most)
	}
	return engine.CheckOptionalName(what, text)
}
