/** POST requests with the header `Idempotency-Key`: a repeat gets the stored response and is not executed. */
import * as HttpApp from "@effect/platform/HttpApp"
import * as HttpBody from "@effect/platform/HttpBody"
import * as HttpServerRequest from "@effect/platform/HttpServerRequest"
import * as HttpServerResponse from "@effect/platform/HttpServerResponse"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import * as Schema from "effect/Schema"
import type { TenantScope } from "../../domain/accounts/Account.ts"
import { Conflict, ValidationError } from "../../domain/Errors.ts"
import { IdempotencyHeader, type RepeatableRequest } from "../../domain/IdempotencyKey.ts"
import type { TokenId } from "../../domain/Ids.ts"
import { hashOf, type RepeatedRequests } from "../../usecases/accounts/RepeatedRequests.ts"
import * as Issues from "../server/Issues.ts"

/** True for a request that is executed once. It runs to its end without its client, whose repeat gets the response. */
export const isExecutedOnce = ({ headers, method, url }: HttpServerRequest.HttpServerRequest): boolean =>
  method === "POST" && headers["idempotency-key"] !== undefined && url.startsWith("/api/manage/")

const uploadRefused = new ValidationError({
  message: "An Idempotency-Key is taken with a JSON body, not with an upload."
})

const decodeKey = (header: string) =>
  Schema.decodeUnknown(IdempotencyHeader)({ "idempotency-key": header }).pipe(
    Effect.catchTag("ParseError", Issues.failWithIssues)
  )

type StoredResponse = { readonly status: number; readonly contentType: string; readonly body: string }

/** The stored response in place of `response`, with the headers that every response has. */
const replay = (stored: StoredResponse, response: HttpServerResponse.HttpServerResponse) =>
  response.pipe(
    HttpServerResponse.setStatus(stored.status),
    HttpServerResponse.setBody(HttpBody.text(stored.body, stored.contentType)),
    HttpServerResponse.setHeader("idempotent-replayed", "true")
  )

/** Lets the first request with a key proceed and stores its response. Answers repeats with the stored response. */
export const executeOnce = (
  repeatedRequests: RepeatedRequests,
  { tenantId }: TenantScope,
  tokenId: TokenId
) =>
  Effect.gen(function* () {
    const request = yield* HttpServerRequest.HttpServerRequest
    const header = request.headers["idempotency-key"]
    if (request.method !== "POST" || header === undefined) return
    yield* decodeKey(header)
    if (/^multipart\//iu.test(request.headers["content-type"] ?? "")) return yield* uploadRefused
    const requestHash = hashOf(request.url, yield* Effect.orDie(request.text))
    const keyedRequest: RepeatableRequest = { tenantId, tokenId, idempotencyKey: header, requestHash }
    const stored = yield* repeatedRequests.begin(keyedRequest)
    if (Option.isSome(stored)) {
      yield* HttpApp.appendPreResponseHandler((_, response) => Effect.succeed(replay(stored.value, response)))
      return yield* new Conflict({ message: "It has been answered before." })
    }
    yield* HttpApp.appendPreResponseHandler((_, response) =>
      response.body._tag === "Uint8Array"
        ? Effect.as(
            repeatedRequests.end(keyedRequest, {
              status: response.status,
              contentType: response.body.contentType,
              body: new TextDecoder().decode(response.body.body)
            }),
            response
          )
        : Effect.succeed(response)
    )
  })
