package scenario

import (
	"fmt"
	"time"

	kagziv1 "github.com/kagzi/kagzi/proto/kagzi/v1"
)

const ms = time.Millisecond

// catalog lists the workflow types of the shop and of its data team.
var catalog = []*plan{
	{kind: "order", queue: "orders", version: "2.4.1", share: 6, input: orderInput, output: orderOutput,
		tags: orderTags, named: orderName,
		retry: &kagziv1.RetryPolicy{MaximumAttempts: 5, InitialIntervalMs: 1000, BackoffCoefficient: 2,
			MaximumIntervalMs: 60_000},
		acts: []act{
			{name: "validate", takes: 40 * ms, upTo: 180 * ms, output: done},
			{name: "reserve-stock", takes: 300 * ms, upTo: 1400 * ms, odds: 0.02, mishap: &stockMishap,
				output: reserved},
			{name: "charge-card", takes: 900 * ms, upTo: 3800 * ms, odds: 0.03, mishap: &gatewayMishap,
				during: gatewayDown, output: charged, note: "charging the card"},
			{name: "cool-off", kind: nap, takes: 4 * time.Second, upTo: 20 * time.Second},
			{name: "ship", takes: 1200 * ms, upTo: 5 * time.Second, odds: 0.02, mishap: &carrierMishap, output: shipped,
				note: "handing over to the carrier"},
			{name: "confirm", takes: 120 * ms, upTo: 500 * ms, output: done},
		},
		undo: []act{
			{name: "refund-card", takes: 700 * ms, upTo: 2 * time.Second, output: done, note: "refunding"},
			{name: "release-stock", takes: 200 * ms, upTo: 800 * ms, output: done},
		}},
	{kind: "invoice.send", queue: "emails", version: "1.9.0", share: 5, input: invoiceInput, output: messageOutput,
		tags: customerTags, named: invoiceName,
		acts: []act{
			{name: "render-pdf", takes: 500 * ms, upTo: 2200 * ms, output: rendered},
			{name: "send", takes: 300 * ms, upTo: 1800 * ms, odds: 0.04, mishap: &smtpMishap, during: mailDown,
				output: messageID},
			{name: "archive", takes: 80 * ms, upTo: 400 * ms, output: done},
		}},
	{kind: "thumbnail", queue: "media", version: "0.7.3", share: 5, input: imageInput, output: imageOutput,
		acts: []act{
			{name: "download", takes: 200 * ms, upTo: 900 * ms, output: fetched},
			{name: "resize", takes: 400 * ms, upTo: 2600 * ms, odds: 0.03, mishap: &imageMishap, output: resized},
			{name: "upload", takes: 200 * ms, upTo: 800 * ms, output: done},
		}},
	{kind: "refund.approval", queue: "orders", version: "2.4.1", share: 1, input: refundInput, output: refundOutput,
		tags:   customerTags,
		answer: approval,
		acts: []act{
			{name: "load-order", takes: 60 * ms, upTo: 300 * ms, output: done},
			{name: "wait-approval", kind: wait, signal: "approval", limit: 48 * time.Hour},
			{name: "pay-back", takes: 800 * ms, upTo: 3 * time.Second, mishap: &gatewayMishap, during: gatewayDown,
				output: charged},
			{name: "tell-customer", kind: child, starts: []string{"invoice.send"}},
		}},
	{kind: "onboarding", queue: "emails", version: "1.9.0", share: 1, input: customerInput, tags: customerTags,
		acts: []act{
			{name: "welcome-mail", takes: 400 * ms, upTo: 1500 * ms, odds: 0.03, mishap: &smtpMishap, during: mailDown,
				output: messageID},
			{name: "let-them-look-around", kind: nap, takes: 20 * time.Second, upTo: 50 * time.Second},
			{name: "tips-mail", takes: 400 * ms, upTo: 1500 * ms, output: messageID},
		}},
	{kind: "report.nightly", queue: "reports", version: "0.14.2", input: reportInput, output: reportOutput,
		tags: dataTags,
		acts: []act{
			{name: "snapshot", takes: 4 * time.Second, upTo: 9 * time.Second, output: rows},
			{name: "aggregate", times: 12, takes: 3 * time.Second, upTo: 25 * time.Second, odds: 0.01,
				mishap: &sqlMishap, output: rows, note: "aggregating 12 regions"},
			{name: "render", takes: 2 * time.Second, upTo: 5 * time.Second, output: rendered},
			{name: "mail-report", kind: child, starts: []string{"invoice.send"}},
		}},
	{kind: "import.catalog", queue: "reports", version: "0.14.2", input: catalogInput, output: catalogOutput,
		tags: dataTags,
		acts: []act{
			{name: "fetch-feed", takes: time.Second, upTo: 6 * time.Second, odds: 0.06, mishap: &feedMishap,
				output: fetched},
			{name: "parse", takes: 2 * time.Second, upTo: 7 * time.Second, odds: 0.02, mishap: &parseMishap,
				output: rows},
			{name: "upsert", times: 4, takes: 2 * time.Second, upTo: 9 * time.Second, output: rows,
				note: "writing 4 batches"},
			{name: "reindex", takes: 3 * time.Second, upTo: 8 * time.Second, output: done},
		}},
	{kind: "sync.crm", queue: "reports", version: "0.14.2", input: crmInput, output: crmOutput, tags: dataTags,
		key: func(random) string { return "crm:acme" },
		acts: []act{
			{name: "pull-contacts", takes: 2 * time.Second, upTo: 6 * time.Second, odds: 0.08, mishap: &rateMishap,
				output: rows},
			{name: "merge", takes: 3 * time.Second, upTo: 12 * time.Second, output: rows},
			{name: "push-changes", takes: 2 * time.Second, upTo: 8 * time.Second, odds: 0.05, mishap: &rateMishap,
				output: rows},
		}},
}

// approval returns how staff answer a refund: most are approved within minutes.
func approval(l random) (time.Duration, outcome) {
	yes := l.chance(0.85)
	return l.between(8*time.Second, 90*time.Second),
		outcome{"approval", fmt.Sprintf(`{"approved":%t,"by":%q}`, yes, pick(l, staff))}
}

var staff = []string{"mira", "jonas", "priya"}

var (
	usualMishap = mishap{kind: "RuntimeError", message: "unexpected end of input"}
	stockMishap = mishap{kind: "OutOfStock", message: "sku KETTLE-17 is sold out in warehouse HAM-2", fatal: true,
		stack: "main.(*Warehouse).Reserve\n\tshop/warehouse/reserve.go:88\nmain.Order.func2\n\tshop/orders/order.go:47"}
	gatewayMishap = mishap{kind: "GatewayError",
		message: "payment gateway answered 503: upstream timed out after 2.5 s",
		stack:   "main.(*Gateway).Charge\n\tshop/payments/gateway.go:142\nmain.Order.func3\n\tshop/orders/order.go:61\ngithub.com/kagzi/kagzi/sdk.Step[...]\n\tsdk/step.go:96"}
	declinedMishap = mishap{kind: "CardDeclined", message: "card declined: insufficient funds", fatal: true,
		stack: "main.(*Gateway).Charge\n\tshop/payments/gateway.go:151\nmain.Order.func3\n\tshop/orders/order.go:61"}
	carrierMishap = mishap{kind: "AddressError", message: "carrier: postcode 2209 does not exist in Hamburg",
		fatal: true,
		stack: "main.(*Carrier).Label\n\tshop/shipping/label.go:73\nmain.Order.func4\n\tshop/orders/order.go:79"}
	smtpMishap = mishap{kind: "*textproto.Error", message: "421 4.7.0 try again later, closing connection",
		stack: "net/smtp.(*Client).Mail\n\tnet/smtp/smtp.go:250\nmain.Invoice.func2\n\tmailer/send.go:38"}
	imageMishap = mishap{kind: "image.FormatError", message: "png: invalid format: not a PNG file", fatal: true,
		stack: "image/png.Decode\n\timage/png/reader.go:987\nmain.Thumbnail.func2\n\tmedia/resize.go:29"}
	sqlMishap = mishap{kind: "*pgconn.PgError",
		message: "ERROR: canceling statement due to statement timeout (SQLSTATE 57014)",
		stack:   "main.aggregate\n\treports/aggregate.go:112\nmain.Nightly.func2\n\treports/nightly.go:54"}
	feedMishap = mishap{kind: "*url.Error", message: `Get "https://feeds.example.com/catalog.xml": context deadline exceeded`,
		stack: "net/http.(*Client).Do\n\tnet/http/client.go:591\nmain.fetchFeed\n\tcatalog/feed.go:33"}
	parseMishap = mishap{kind: "*xml.SyntaxError",
		message: "XML syntax error on line 20418: element <price> closed by </item>", fatal: true,
		stack: "encoding/xml.(*Decoder).Token\n\tencoding/xml/xml.go:303\nmain.parse\n\tcatalog/parse.go:71"}
	rateMishap = mishap{kind: "RateLimited", message: "crm: 429 Too Many Requests, retry after 30 s",
		again: 30 * time.Second,
		stack: "main.(*CRM).get\n\tcrm/client.go:58\nmain.Sync.func1\n\tcrm/sync.go:24"}
)
