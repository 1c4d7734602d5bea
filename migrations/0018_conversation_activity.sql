-- When a conversation was last changed. Turns raise updated_at, which indexes sort by, only every few minutes: an update of no
-- indexed column writes no index, if the page has room for the row's next version. Null, or older than updated_at: that is
-- exact.
alter table conversations add column changed_at timestamptz;
alter table conversations set (fillfactor = 75);
