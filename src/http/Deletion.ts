/** Endpoints that delete one thing. */
import * as HttpApiEndpoint from "@effect/platform/HttpApiEndpoint"
import * as Schema from "effect/Schema"
import { NotFound, ServiceUnavailable, ValidationError } from "../domain/Errors.ts"
import { failure, success } from "./Envelope.ts"

/** Deletes what the `:id` of `route` names, and says so. */
export const deletion = <const Name extends string, Id>(
  name: Name,
  route: HttpApiEndpoint.PathSegment,
  id: Schema.Schema<Id, string>
) => {
  const path: Schema.Schema<{ readonly id: Id }, { readonly id: string }> = Schema.Struct({ id })
  return HttpApiEndpoint.del(name, route)
    .setPath(path)
    .addSuccess(success(Schema.Struct({ id, deleted: Schema.Literal(true) })))
    .addError(failure(ValidationError, NotFound, ServiceUnavailable))
}
