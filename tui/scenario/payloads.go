package scenario

import (
	"bytes"
	"fmt"

	kagziv1 "github.com/kagzi/kagzi/proto/kagzi/v1"
)

// jsonPayload returns text as the SDK sends a value; nil for an empty text.
func jsonPayload(text string) *kagziv1.Payload {
	if text == "" {
		return nil
	}
	return &kagziv1.Payload{Data: []byte(text), Metadata: map[string]string{"content-type": "application/json"}}
}

var (
	customers = []string{"acme", "globex", "initech", "umbrella", "hooli", "stark", "wayne", "wonka"}
	goods     = []string{"KETTLE-17", "MUG-BLUE", "TEAPOT-3", "FILTER-100", "SCALE-PRO", "GRINDER-2"}
	regions   = []string{"eu", "us", "apac"}
)

func orderInput(l random) string {
	sku, n := pick(l, goods), 1+l.IntN(4)
	return fmt.Sprintf(`{"customer":%q,"items":[{"sku":%q,"quantity":%d,"price_cents":%d}],"express":%t}`,
		pick(l, customers), sku, n, 490+l.IntN(9000), l.chance(0.3))
}

func orderOutput(l random) string {
	return fmt.Sprintf(`{"order_id":%d,"status":"shipped"}`, 40_000+l.IntN(9000))
}

func orderName(l random) string { return fmt.Sprintf("order-%05d", l.IntN(100_000)) }

func orderTags(l random) map[string]string {
	return map[string]string{"customer": pick(l, customers), "region": pick(l, regions)}
}

func customerTags(l random) map[string]string {
	return map[string]string{"customer": pick(l, customers)}
}

func dataTags(random) map[string]string { return map[string]string{"team": "data"} }

func reserved(l random, _ int) string {
	return fmt.Sprintf(`{"reservation":"r-%06d"}`, l.IntN(1_000_000))
}

func charged(l random, _ int) string {
	return fmt.Sprintf(`{"charge":"ch_%08x","amount_cents":%d}`, l.Uint32(), 490+l.IntN(20_000))
}

func shipped(l random, _ int) string {
	return fmt.Sprintf(`{"tracking":"DE%09d"}`, l.IntN(1_000_000_000))
}

func invoiceInput(l random) string {
	return fmt.Sprintf(`{"invoice":%d,"to":"billing@%s.example","locale":"en"}`, 9000+l.IntN(900), pick(l, customers))
}

func invoiceName(l random) string { return fmt.Sprintf("invoice-%05d", l.IntN(100_000)) }

func messageOutput(l random) string { return messageID(l, 0) }

func messageID(l random, _ int) string {
	return fmt.Sprintf(`{"message_id":"<%08x@mail.example>"}`, l.Uint32())
}

func rendered(l random, _ int) string {
	return fmt.Sprintf(`{"pages":%d,"bytes":%d}`, 1+l.IntN(6), 20_000+l.IntN(90_000))
}

func imageInput(l random) string {
	return fmt.Sprintf(`{"source":"s3://photos/%06x.jpg","sizes":[64,256,1024]}`, l.IntN(1<<24))
}

func imageOutput(l random) string {
	return fmt.Sprintf(`{"written":3,"bytes":%d}`, 40_000+l.IntN(300_000))
}

func fetched(l random, _ int) string { return fmt.Sprintf(`{"bytes":%d}`, 100_000+l.IntN(4_000_000)) }

func resized(l random, _ int) string {
	return fmt.Sprintf(`{"width":%d,"height":%d}`, 64<<l.IntN(4), 64<<l.IntN(4))
}

func refundInput(l random) string {
	return fmt.Sprintf(`{"order":"order-%05d","amount_cents":%d,"why":%q}`, l.IntN(100_000), 900+l.IntN(30_000),
		pick(l, []string{"arrived broken", "wrong colour", "too late"}))
}

func refundOutput(random) string { return `{"refunded":true}` }

func customerInput(l random) string {
	return fmt.Sprintf(`{"customer":%q,"plan":%q}`, pick(l, customers), pick(l, []string{"free", "team", "business"}))
}

func reportInput(random) string { return `{"regions":12,"currency":"EUR"}` }

func reportOutput(l random) string {
	return fmt.Sprintf(`{"orders":%d,"revenue_cents":%d}`, 300+l.IntN(900), 5_000_000+l.IntN(9_000_000))
}

func catalogInput(random) string {
	return `{"feed":"https://feeds.example.com/catalog.xml","full":false}`
}

func catalogOutput(l random) string {
	return fmt.Sprintf(`{"changed":%d,"removed":%d}`, l.IntN(400), l.IntN(20))
}

func crmInput(random) string { return `{"tenant":"acme","since":"last"}` }

func crmOutput(l random) string { return fmt.Sprintf(`{"pushed":%d}`, l.IntN(80)) }

func rows(l random, i int) string {
	return fmt.Sprintf(`{"part":%d,"rows":%d}`, i+1, 1000+l.IntN(90_000))
}

// bigPayload returns about 300 KiB of JSON: a basket with very many lines.
func bigPayload() *kagziv1.Payload {
	var b bytes.Buffer
	b.WriteString(`{"customer":"acme","note":"yearly stock order","items":[`)
	for i := range 3780 {
		if i > 0 {
			b.WriteByte(',')
		}
		fmt.Fprintf(&b, `{"line":%d,"sku":"%s-%04d","quantity":%d,"price_cents":%d,"gift":%t}`, i+1,
			goods[i%len(goods)], i, 1+i%7, 490+i*3, i%5 == 0)
	}
	b.WriteString(`]}`)
	return &kagziv1.Payload{Data: b.Bytes(), Metadata: map[string]string{"content-type": "application/json"}}
}

// textPayload returns a payload that is not JSON.
func textPayload() *kagziv1.Payload {
	return &kagziv1.Payload{
		Data: []byte(
			"sku;name;price\nKETTLE-17;Kettle, 1.7 l;49.90\nMUG-BLUE;Mug, blue;8.50\nTEAPOT-3;Teapot for three;24.00\n"),
		Metadata: map[string]string{"content-type": "text/csv"},
	}
}

// binaryPayload returns the start of an image.
func binaryPayload() *kagziv1.Payload {
	data := []byte("\x89PNG\r\n\x1a\n\x00\x00\x00\rIHDR\x00\x00\x00\x40\x00\x00\x00\x40\x08\x06\x00\x00\x00")
	for i := range 1024 {
		data = append(data, byte(mix(uint64(i))))
	}
	return &kagziv1.Payload{Data: data, Metadata: map[string]string{"content-type": "image/png"}}
}
