import * as Schema from "effect/Schema"
import { StoredAttachment } from "../../domain/channels/Attachment.ts"
import { jsonbOf } from "../Jsonb.ts"

/** Attachments as `messages.attachments` stores them. */
export const attachmentsJson = jsonbOf(Schema.Array(StoredAttachment))
