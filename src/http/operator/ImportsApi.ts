/** Import of conversations by the operator: JSON lines, limited per request. */
import * as HttpApiEndpoint from "@effect/platform/HttpApiEndpoint"
import * as HttpApiGroup from "@effect/platform/HttpApiGroup"
import * as OpenApi from "@effect/platform/OpenApi"
import * as Schema from "effect/Schema"
import { ImportReport } from "../../domain/conversations/ConversationImport.ts"
import { AgentId } from "../../domain/Ids.ts"
import { PayloadTooLarge, ValidationError } from "../../domain/Errors.ts"
import { OperatorAuth } from "../Auth.ts"
import { failure, MaxBodyBytes, success, textBody } from "../Envelope.ts"
import { MiB } from "../../domain/Bytes.ts"
import { optional } from "../../domain/Optional.ts"

/** Maximum bytes of one request. */
const maxImportBytes = 16 * MiB

const Lines = textBody("application/x-ndjson")

const conversations = HttpApiEndpoint.post("conversations", "/api/operator/import/conversations")
  .setUrlParams(Schema.Struct({ agentId: optional(AgentId) }))
  .setPayload(Lines)
  .addSuccess(success(ImportReport))
  .addError(failure(ValidationError, PayloadTooLarge))
  .annotate(MaxBodyBytes, maxImportBytes)
  .annotate(OpenApi.Summary, "Import conversations, one a line; repeating it imports nothing twice")

export class ImportsApi extends HttpApiGroup.make("imports").add(conversations).middleware(OperatorAuth) {}
