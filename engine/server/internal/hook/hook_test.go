package hook

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/kagzi/kagzi/engine"
)

var now = time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)

// delivery returns a delivery with headers such as "Name: value".
func delivery(body string, headers ...string) *Delivery {
	d := &Delivery{Header: http.Header{}, Body: []byte(body)}
	for _, h := range headers {
		name, value, _ := strings.Cut(h, ": ")
		d.Header.Add(name, value)
	}
	return d
}

func hookOf(scheme engine.HookScheme, secret string) *engine.Hook {
	return &engine.Hook{Scheme: scheme, Secret: secret}
}

func macOf(secret, text string) string {
	mac := hmac.New(sha256.New, []byte(secret))
	mac.Write([]byte(text))
	return hex.EncodeToString(mac.Sum(nil))
}

func stripeHeader(secret string, at time.Time, body string) string {
	return fmt.Sprintf("Stripe-Signature: t=%d,v1=%s,v0=00", at.Unix(),
		macOf(secret, fmt.Sprintf("%d.%s", at.Unix(), body)))
}

// The example of GitHub's page "Validating webhook deliveries".
const (
	githubSecret  = "It's a Secret to Everybody"
	githubBody    = "Hello, World!"
	githubExample = "sha256=757107ea0eb2509fc211221cce984b8a37570b6d7586c22c46f4379c8b043e17"
)

func TestTheExampleOfGitHubIsVerified(t *testing.T) {
	h := hookOf(engine.HookGitHub, githubSecret)
	for name, c := range map[string]struct {
		body    string
		headers []string
		want    bool
	}{
		"as published":       {githubBody, []string{githubExample}, true},
		"in capitals":        {githubBody, []string{"sha256=" + strings.ToUpper(githubExample[7:])}, true},
		"another body":       {githubBody + "\n", []string{githubExample}, false},
		"no header":          {githubBody, nil, false},
		"an empty header":    {githubBody, []string{""}, false},
		"no prefix":          {githubBody, []string{githubExample[7:]}, false},
		"SHA-1":              {githubBody, []string{"sha1=" + githubExample[7:]}, false},
		"two headers":        {githubBody, []string{githubExample, githubExample}, false},
		"cut short":          {githubBody, []string{githubExample[:20]}, false},
		"one digit too many": {githubBody, []string{githubExample + "0"}, false},
		"not hexadecimal":    {githubBody, []string{"sha256=" + strings.Repeat("zz", 32)}, false},
		"only a prefix":      {githubBody, []string{"sha256="}, false},
	} {
		d := delivery(c.body)
		for _, value := range c.headers {
			d.Header.Add("x-hub-signature-256", value)
		}
		if got, age := Verify(h, d, now); got != c.want || age != 0 {
			t.Errorf("%s: %v, %s, want %v", name, got, age, c.want)
		}
	}
}

// The header is the example of Stripe's page "Verify webhook signatures manually", which does not give
// its secret.
func TestTheHeaderThatStripePublishesIsRead(t *testing.T) {
	const signature = "5257a869e7ecebeda32affa62cdca3fa51cad7e77a0e56ff536d0ce8e108d8bd"
	at, signatures := stripeParts(delivery("", "Stripe-Signature: t=1492774577,v1="+signature+
		",v0=6ffbb59b2300aae63f272406069a9788598b792a944a07aab816edb039989a39"))
	if at != "1492774577" || len(signatures) != 1 || signatures[0] != signature {
		t.Errorf("it has the time %q and the signatures %q", at, signatures)
	}
}

func TestAStripeSignatureIsOfItsTimeAndTheBody(t *testing.T) {
	const secret, body = "whsec_test_secret_of_it", `{"id":"evt_1","type":"invoice.paid"}`
	h := hookOf(engine.HookStripe, secret)
	good := stripeHeader(secret, now, body)
	mac := good[strings.Index(good, "v1=")+3 : strings.Index(good, ",v0")]
	at := fmt.Sprint(now.Unix())
	for name, c := range map[string]struct {
		header string
		want   bool
		age    time.Duration
	}{
		"as it is":                    {good, true, 0},
		"of two secrets":              {"Stripe-Signature: t=" + at + ",v1=" + strings.Repeat("00", 32) + ",v1=" + mac, true, 0},
		"just young enough":           {stripeHeader(secret, now.Add(-MaxAge), body), true, 0},
		"too old":                     {stripeHeader(secret, now.Add(-MaxAge-time.Second), body), true, MaxAge + time.Second},
		"from the future":             {stripeHeader(secret, now.Add(time.Hour), body), true, -time.Hour},
		"from before all times":       {stripeHeader(secret, time.Unix(-1<<62, 0), body), true, 1<<63 - 1},
		"too old with another body":   {stripeHeader(secret, now.Add(-time.Hour), body+" "), false, 0},
		"with another time":           {"Stripe-Signature: t=" + fmt.Sprint(now.Unix()+1) + ",v1=" + mac, false, 0},
		"with two times":              {"Stripe-Signature: t=" + at + ",t=" + at + ",v1=" + mac, false, 0},
		"without a time":              {"Stripe-Signature: v1=" + mac, false, 0},
		"with a time that is none":    {"Stripe-Signature: t=1e9,v1=" + mac, false, 0},
		"of the test scheme":          {"Stripe-Signature: t=" + at + ",v0=" + mac, false, 0},
		"with too many signatures":    {"Stripe-Signature: t=" + at + strings.Repeat(",v1="+mac, 20), false, 0},
		"with the header of GitHub's": {"X-Hub-Signature-256: sha256=" + macOf(secret, body), false, 0},
	} {
		if got, age := Verify(h, delivery(body, c.header), now); got != c.want || age != c.age {
			t.Errorf("%s: %v, %s, want %v, %s", name, got, age, c.want, c.age)
		}
	}
}

func TestAPlainDeliveryShowsTheSecretOnce(t *testing.T) {
	const secret = "0123456789abcdef"
	h := hookOf(engine.HookPlain, secret)
	for name, c := range map[string]struct {
		headers []string
		want    bool
	}{
		"in its header":      {[]string{"Kagzi-Hook-Secret: " + secret}, true},
		"as a bearer":        {[]string{"Authorization: bearer " + secret}, true},
		"in both":            {[]string{"Authorization: Bearer x", "Kagzi-Hook-Secret: " + secret}, true},
		"twice":              {[]string{"Kagzi-Hook-Secret: " + secret, "Kagzi-Hook-Secret: " + secret}, false},
		"another":            {[]string{"Kagzi-Hook-Secret: " + secret + "0"}, false},
		"wrong and right":    {[]string{"Authorization: Bearer " + secret, "Kagzi-Hook-Secret: x"}, false},
		"in basic":           {[]string{"Authorization: Basic " + secret}, false},
		"none":               {nil, false},
		"a signature by it":  {[]string{"X-Hub-Signature-256: sha256=" + macOf(secret, "{}")}, false},
		"an empty one":       {[]string{"Kagzi-Hook-Secret: "}, false},
		"a bearer with none": {[]string{"Authorization: Bearer"}, false},
	} {
		if got, _ := Verify(h, delivery("{}", c.headers...), now); got != c.want {
			t.Errorf("%s: %v, want %v", name, got, c.want)
		}
	}
}

func TestBothSecretsAreValidUntilTheEndOfARotation(t *testing.T) {
	for scheme, sign := range map[engine.HookScheme]func(secret string) string{
		engine.HookGitHub: func(s string) string { return "X-Hub-Signature-256: sha256=" + macOf(s, "{}") },
		engine.HookStripe: func(s string) string { return stripeHeader(s, now, "{}") },
		engine.HookPlain:  func(s string) string { return "Kagzi-Hook-Secret: " + s },
	} {
		h := hookOf(scheme, "the-newer-secret")
		h.OldSecret, h.OldUntil = "the-older-secret", now.Add(time.Second)
		for _, c := range []struct {
			secret string
			at     time.Time
			want   bool
		}{
			{"the-newer-secret", now, true}, {"the-older-secret", now, true}, {"another-secret-0", now, false},
			{"the-newer-secret", now.Add(time.Second), true}, {"the-older-secret", now.Add(time.Second), false},
			{decoySecret, now, false}, {decoySecret, now.Add(time.Second), false},
		} {
			if got, _ := Verify(h, delivery("{}", sign(c.secret)), c.at); got != c.want {
				t.Errorf("%s: %s at %s: %v, want %v", scheme, c.secret, c.at, got, c.want)
			}
		}
	}
	if ok, _ := Verify(&engine.Hook{Scheme: 9, Secret: "x"}, delivery("{}", "Kagzi-Hook-Secret: x"), now); ok {
		t.Error("a hook of an unknown scheme is opened")
	}
}

func TestDeliveriesThatAreTheSameHaveTheSameRequestOrId(t *testing.T) {
	describe := func(h *engine.Hook, d *Delivery) About {
		t.Helper()
		a, err := Describe(h, d)
		if err != nil {
			t.Fatal(err)
		}
		return a
	}
	gh, other := hookOf(engine.HookGitHub, "x"), hookOf(engine.HookGitHub, "x")
	gh.ID, other.ID = engine.ID{1}, engine.ID{2}
	first := describe(gh, delivery("{}", "X-GitHub-Delivery: 1", "X-GitHub-Event: push"))
	if first.Event != "push" || first.ID != "1" || engine.CheckName("request_id", first.Request) != nil ||
		len(first.Request) > engine.MaxRequestID {
		t.Errorf("a delivery of GitHub is %+v", first)
	}
	if again := describe(gh, delivery("{}", "X-GitHub-Delivery: 2", "X-GitHub-Event: star")); again.Request != first.Request {
		t.Error("a body under another id and event, which are not signed, is another request")
	}
	for name, another := range map[string]About{
		"another body": describe(gh, delivery("[]")), "another hook": describe(other, delivery("{}")),
	} {
		if another.Request == first.Request {
			t.Errorf("%s is the same request", name)
		}
	}
	const event = `{"id":"evt_1","type":"invoice.paid","pending_webhooks":%d}`
	stripe := hookOf(engine.HookStripe, "x")
	a, b := describe(stripe, delivery(fmt.Sprintf(event, 1))), describe(stripe, delivery(fmt.Sprintf(event, 2)))
	if a.ID != "evt_1" || b.ID != a.ID || a.Event != "invoice.paid" || a.Request == b.Request {
		t.Errorf("an event of Stripe that is sent again with another body is %+v and %+v", a, b)
	}
	if a := describe(stripe, delivery("[]", "Idempotency-Key: 1", "X-GitHub-Delivery: 1")); a.ID != "" || a.Event != "" {
		t.Errorf("a body of Stripe without an id is %+v", a)
	}
	plain := hookOf(engine.HookPlain, "x")
	keyed := describe(plain, delivery("{}", "Idempotency-Key: 1"))
	if describe(plain, delivery("{}", "Idempotency-Key: 2")).Request == keyed.Request ||
		describe(plain, delivery("{}")).Request == keyed.Request ||
		describe(plain, delivery("[]", "Idempotency-Key: 1")).Request != keyed.Request {
		t.Error("the request of a plain delivery is not that of its key")
	}
}

func TestHostileIdsAndEventsAreRefusedByName(t *testing.T) {
	for _, scheme := range []engine.HookScheme{engine.HookGitHub, engine.HookPlain} {
		for _, text := range []string{"\x1b[31m", "a b", "ключ", strings.Repeat("x", 181), "\u202e", "<script>", "a\tb"} {
			_, err := Describe(hookOf(scheme, "x"), delivery("{}", "X-GitHub-Delivery: "+text, "Idempotency-Key: "+text))
			if engine.KindOf(err) != engine.KindInvalid || !strings.Contains(err.Error(), "delivery id") {
				t.Errorf("the delivery id %q of %s: %v", text, scheme, err)
			}
		}
	}
	_, err := Describe(hookOf(engine.HookGitHub, "x"), delivery("{}", "X-GitHub-Event: "+strings.Repeat("x", 101)))
	if engine.KindOf(err) != engine.KindInvalid || !strings.Contains(err.Error(), "event") {
		t.Errorf("an event that is too long: %v", err)
	}
	_, err = Describe(hookOf(engine.HookStripe, "x"), delivery(`{"id":"\u001b[31m","type":"x"}`))
	if engine.KindOf(err) != engine.KindInvalid {
		t.Errorf("a hostile id in a body: %v", err)
	}
}
