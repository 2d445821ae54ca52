-- Begins one snapshot for all statements of a method.
begin
