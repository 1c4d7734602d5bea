/** Platform services of commands. */
import * as FetchHttpClient from "@effect/platform/FetchHttpClient"
import type * as HttpClient from "@effect/platform/HttpClient"

export type Services = HttpClient.HttpClient

export const layer = FetchHttpClient.layer
