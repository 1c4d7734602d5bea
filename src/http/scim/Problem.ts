/** Errors in SCIM's format (RFC 7644, section 3.12), including those of the boundary. */
import * as HttpServerResponse from "@effect/platform/HttpServerResponse"
import type { CodedError } from "../../domain/Errors.ts"
import { statusOf } from "../Envelope.ts"

/** Path of SCIM. */
export const scimPath = "/scim/v2"

/** True when responses of `path` have SCIM's format. */
export const isScimPath = (path: string): boolean => path === scimPath || path.startsWith(`${scimPath}/`)

export const json = (body: unknown, status = 200, headers: Readonly<Record<string, string>> = {}) =>
  HttpServerResponse.text(JSON.stringify(body), {
    status,
    contentType: "application/scim+json; charset=utf-8",
    headers
  })

export const problem = (
  status: number,
  detail: string,
  scimType: string | null,
  headers: Readonly<Record<string, string>>
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

/** The response for an error that is not SCIM's own. */
export const errorResponse = (
  error: CodedError,
  _requestId: string,
  headers: Readonly<Record<string, string>>
): HttpServerResponse.HttpServerResponse => problem(statusOf(error._tag), error.message, null, headers)
