-- Each delivery writes every index of the inbox before it is answered. Ids begin with the moment they were made, so those
-- of an age are found by them; whether a contact has written more is found by the jobs of their serial key; nobody
-- looks for the provider's id of a message here.
drop index channel_inbox_age;
drop index channel_inbox_message;
drop index channel_inbox_waiting;
