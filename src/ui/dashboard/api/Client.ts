/** Requests to the routes of the dashboard, with the session cookie. Results are without the envelope. */
import { infiniteQueryOptions, type QueryKey } from "@tanstack/react-query"
import type { ErrorCode } from "../../../domain/Errors.ts"
import type { FailureBody } from "../../../http/Envelope.ts"

/** An error response of the service. */
export class ApiError extends Error {
  readonly status: number
  readonly code: ErrorCode
  readonly details: Readonly<Record<string, unknown>>
  readonly requestId: string

  constructor(
    status: number,
    code: ErrorCode,
    message: string,
    details: Readonly<Record<string, unknown>>,
    requestId: string
  ) {
    super(message)
    this.name = "ApiError"
    this.status = status
    this.code = code
    this.details = details
    this.requestId = requestId
  }
}

type Query = Readonly<Record<string, string | number | boolean | null | undefined>>

const urlOf = (path: string, query: Query | undefined) => {
  const parameters = new URLSearchParams()
  for (const [name, value] of Object.entries(query ?? {})) {
    if (value !== undefined && value !== null && value !== "") parameters.set(name, String(value))
  }
  const text = parameters.toString()
  return text === "" ? path : `${path}?${text}`
}

/** True if a change was refused because of a concurrent change. */
export const isOutdated = (problem: unknown): boolean =>
  problem instanceof ApiError && problem.code === "CONFLICT" && "version" in problem.details

/** True for an unknown or invalid id. */
export const isUnknownId = (problem: unknown): boolean =>
  problem instanceof ApiError && (problem.status === 404 || problem.status === 400)

/** The error of a response that is not 2xx. */
export const failureOf = async (response: Response): Promise<ApiError> => {
  const body: Partial<FailureBody> = await response.json().catch(() => ({}))
  return new ApiError(
    response.status,
    body.error?.code ?? "INTERNAL_ERROR",
    body.error?.message ?? response.statusText,
    body.error?.details ?? {},
    body.meta?.requestId ?? response.headers.get("x-request-id") ?? ""
  )
}

interface Options<B> {
  readonly query?: Query
  /** Sent as JSON. A `FormData` is sent as it is. */
  readonly body?: B | FormData
  /** The version on which a change is based. The service refuses the change if there is a newer one. */
  readonly version?: number
  /** Repeats with the same key have no second effect. */
  readonly idempotencyKey?: string
  readonly signal?: AbortSignal
}

/**
 * Sends a request with the body `B` and returns `data` of the response. Rejects with {@link ApiError}, or with the
 * error of `fetch` if there is no response.
 */
export const call = async <A, B = never>(
  method: "GET" | "POST" | "PUT" | "PATCH" | "DELETE",
  path: string,
  { query, body, idempotencyKey, signal, version }: Options<B> = {}
): Promise<A> => {
  const isJson = body !== undefined && !(body instanceof FormData)
  const url = urlOf(path, query)
  const response = await fetch(url, {
    method,
    credentials: "same-origin",
    headers: {
      ...(isJson ? { "content-type": "application/json" } : {}),
      ...(version === undefined ? {} : { "if-match": `"${version}"` }),
      ...(idempotencyKey === undefined ? {} : { "idempotency-key": idempotencyKey })
    },
    ...(signal === undefined ? {} : { signal }),
    ...(body instanceof FormData ? { body } : isJson ? { body: JSON.stringify(body) } : {})
  })
  if (!response.ok) throw await failureOf(response)
  const answer: { readonly data: A } = await response.json()
  return answer.data
}

/** The cursor of a list's first page. */
export const firstPage = (): string | null => null

/** A list that is read page by page. `query` is sent with the cursor. */
export const pagesOf = <A extends { readonly nextCursor: string | null }>(
  queryKey: QueryKey,
  path: string,
  query: Query = {}
) =>
  infiniteQueryOptions({
    queryKey,
    queryFn: ({ pageParam, signal }) =>
      call<A>("GET", path, { query: { ...query, cursor: pageParam }, signal }),
    initialPageParam: firstPage(),
    getNextPageParam: ({ nextCursor }) => nextCursor
  })
