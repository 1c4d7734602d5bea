/** Body of a team member's message: JSON, or a form whose files are read as a stream. */
import type * as HttpServerRequest from "@effect/platform/HttpServerRequest"
import * as Effect from "effect/Effect"
import * as Json from "../../../domain/Json.ts"
import * as Upload from "../../server/Upload.ts"
import * as HostedForm from "../chat/HostedForm.ts"
import * as Issues from "../../server/Issues.ts"
import { MessageBody } from "./TakeoverApi.ts"

const decode = Json.decodeUnknown(MessageBody)

/** The text, and the results of `onFile` for the files; the text of a form may be empty. */
export const read = <A, E, R>(
  request: HttpServerRequest.HttpServerRequest,
  onFile: (file: Upload.UploadedFile) => Effect.Effect<A, E, R>
) =>
  Effect.gen(function* () {
    if (!HostedForm.isForm(request)) {
      const body = yield* Effect.catchTag(request.json, "RequestError", Effect.die)
      return {
        ...(yield* Effect.catchTag(decode(body), "ParseError", Issues.failWithIssues)),
        files: new Array<A>()
      }
    }
    const { fields, files } = yield* Upload.read(request, onFile)
    const content = fields["content"] ?? ""
    if (content.trim() === "" && files.length > 0) return { files }
    return { ...(yield* Effect.catchTag(decode({ content }), "ParseError", Issues.failWithIssues)), files }
  })
