package widget

// SetValue replaces a field's value.
func (f *Form) SetValue(name, value string) { f.field(name).set(value) }

// Whole reports whether all of the data is shown.
func (d *Document) Whole() bool { return d.whole }
