// Package markup makes the elements and attributes of the page. They are those of gomponents, behind
// functions that the compiler does not inline: inlined, each of a thousand uses would have a copy of its
// code, together more than 1 MB.
package markup

import (
	g "maragu.dev/gomponents"
	"maragu.dev/gomponents/html"
)

// El returns an element.
//
//go:noinline
func El(name string, children ...g.Node) g.Node { return g.El(name, children...) }

// Text returns a text; it is escaped.
//
//go:noinline
func Text(s string) g.Node { return g.Text(s) }

// Attr returns an attribute with a value, which is escaped.
//
//go:noinline
func Attr(name, value string) g.Node { return g.Attr(name, value) }

// Is returns an attribute without a value.
//
//go:noinline
func Is(name string) g.Node { return g.Attr(name) }

// Doctype puts the type of the document before its root.
//
//go:noinline
func Doctype(root g.Node) g.Node { return html.Doctype(root) }

// Data returns an attribute for the script.
func Data(name, value string) g.Node { return Attr("data-"+name, value) }

// Aria returns an attribute for assistive technology.
func Aria(name, value string) g.Node { return Attr("aria-"+name, value) }

// Elements by their names.
func A(children ...g.Node) g.Node        { return El("a", children...) }
func Aside(children ...g.Node) g.Node    { return El("aside", children...) }
func B(children ...g.Node) g.Node        { return El("b", children...) }
func Body(children ...g.Node) g.Node     { return El("body", children...) }
func Br(children ...g.Node) g.Node       { return El("br", children...) }
func Button(children ...g.Node) g.Node   { return El("button", children...) }
func Caption(children ...g.Node) g.Node  { return El("caption", children...) }
func Code(children ...g.Node) g.Node     { return El("code", children...) }
func Dd(children ...g.Node) g.Node       { return El("dd", children...) }
func Details(children ...g.Node) g.Node  { return El("details", children...) }
func Div(children ...g.Node) g.Node      { return El("div", children...) }
func Dl(children ...g.Node) g.Node       { return El("dl", children...) }
func Dt(children ...g.Node) g.Node       { return El("dt", children...) }
func Form(children ...g.Node) g.Node     { return El("form", children...) }
func H1(children ...g.Node) g.Node       { return El("h1", children...) }
func H2(children ...g.Node) g.Node       { return El("h2", children...) }
func H3(children ...g.Node) g.Node       { return El("h3", children...) }
func H4(children ...g.Node) g.Node       { return El("h4", children...) }
func HTML(children ...g.Node) g.Node     { return El("html", children...) }
func Head(children ...g.Node) g.Node     { return El("head", children...) }
func Header(children ...g.Node) g.Node   { return El("header", children...) }
func Input(children ...g.Node) g.Node    { return El("input", children...) }
func Label(children ...g.Node) g.Node    { return El("label", children...) }
func Li(children ...g.Node) g.Node       { return El("li", children...) }
func Link(children ...g.Node) g.Node     { return El("link", children...) }
func Main(children ...g.Node) g.Node     { return El("main", children...) }
func Meta(children ...g.Node) g.Node     { return El("meta", children...) }
func Nav(children ...g.Node) g.Node      { return El("nav", children...) }
func Ol(children ...g.Node) g.Node       { return El("ol", children...) }
func Option(children ...g.Node) g.Node   { return El("option", children...) }
func P(children ...g.Node) g.Node        { return El("p", children...) }
func Pre(children ...g.Node) g.Node      { return El("pre", children...) }
func Script(children ...g.Node) g.Node   { return El("script", children...) }
func Section(children ...g.Node) g.Node  { return El("section", children...) }
func Select(children ...g.Node) g.Node   { return El("select", children...) }
func Small(children ...g.Node) g.Node    { return El("small", children...) }
func Span(children ...g.Node) g.Node     { return El("span", children...) }
func Summary(children ...g.Node) g.Node  { return El("summary", children...) }
func TBody(children ...g.Node) g.Node    { return El("tbody", children...) }
func THead(children ...g.Node) g.Node    { return El("thead", children...) }
func Table(children ...g.Node) g.Node    { return El("table", children...) }
func Td(children ...g.Node) g.Node       { return El("td", children...) }
func Textarea(children ...g.Node) g.Node { return El("textarea", children...) }
func Th(children ...g.Node) g.Node       { return El("th", children...) }
func TitleEl(children ...g.Node) g.Node  { return El("title", children...) }
func Tr(children ...g.Node) g.Node       { return El("tr", children...) }
func Ul(children ...g.Node) g.Node       { return El("ul", children...) }

// Attributes by their names.
func Action(value string) g.Node       { return Attr("action", value) }
func AutoComplete(value string) g.Node { return Attr("autocomplete", value) }
func Charset(value string) g.Node      { return Attr("charset", value) }
func Class(value string) g.Node        { return Attr("class", value) }
func ColSpan(value string) g.Node      { return Attr("colspan", value) }
func Content(value string) g.Node      { return Attr("content", value) }
func DateTime(value string) g.Node     { return Attr("datetime", value) }
func For(value string) g.Node          { return Attr("for", value) }
func Href(value string) g.Node         { return Attr("href", value) }
func ID(value string) g.Node           { return Attr("id", value) }
func Lang(value string) g.Node         { return Attr("lang", value) }
func Method(value string) g.Node       { return Attr("method", value) }
func Name(value string) g.Node         { return Attr("name", value) }
func Placeholder(value string) g.Node  { return Attr("placeholder", value) }
func Rel(value string) g.Node          { return Attr("rel", value) }
func Role(value string) g.Node         { return Attr("role", value) }
func Rows(value string) g.Node         { return Attr("rows", value) }
func Scope(value string) g.Node        { return Attr("scope", value) }
func Src(value string) g.Node          { return Attr("src", value) }
func TabIndex(value string) g.Node     { return Attr("tabindex", value) }
func Title(value string) g.Node        { return Attr("title", value) }
func Type(value string) g.Node         { return Attr("type", value) }
func Value(value string) g.Node        { return Attr("value", value) }

// Attributes without values.
func AutoFocus() g.Node { return Is("autofocus") }
func Checked() g.Node   { return Is("checked") }
func Defer() g.Node     { return Is("defer") }
func Required() g.Node  { return Is("required") }
func Selected() g.Node  { return Is("selected") }
