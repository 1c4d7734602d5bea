/** Errors as clients of SCIM read them (RFC 7644, section 3.12), those of the boundary included. */
import * as HttpServerResponse from "@effect/platform/HttpServerResponse"
import type { CodedError } from "../../domain/Errors.ts"
import { statusOf } from "../Envelope.ts"

/** Where SCIM is. */
export const scimPath = "/scim/v2"

/** Whether the answers of `path` have SCIM's shape. */
export const isShapeOf = (path: string): boolean => path === scimPath || path.startsWith(`${scimPath}/`)

export const json = (body: unknown, status = 200, headers: Readonly<Record<string, string>> = {}) =>
  HttpServerResponse.text(JSON.stringify(body), {
    status,
    contentType: "application/scim+json; charset=utf-8",
    headers
  })

export const problem = (
  status: number,
  detail: string,
  scimType: string | null = null,
  headers: Readonly<Record<string, string>> = {}
) =>
  json(
    {
      schemas: ["urn:ietf:params:scim:api:messages:2.0:Error"],
      status: String(status),
      ...(scimType === null ? {} : { scimType }),
      detail
    },
    status,
    headers
  )

/** The answer for an error that is not SCIM's own. */
export const answer = (
  error: CodedError,
  _requestId: string,
  headers: Readonly<Record<string, string>> = {}
): HttpServerResponse.HttpServerResponse => problem(statusOf(error._tag), error.message, null, headers)
