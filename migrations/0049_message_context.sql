-- What a channel's adapter said of a contact's message, to get it back when it answers: an e-mail's subject and ids.
alter table messages add column channel_context jsonb;
