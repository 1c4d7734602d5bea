/** The dashboard's part of `http/Api`, whose identifier it bears, so that its handlers fit both. */
import * as HttpApi from "@effect/platform/HttpApi"
import { AgentsApi } from "./AgentsApi.ts"
import { KeysApi } from "./KeysApi.ts"
import { SessionsApi } from "./SessionsApi.ts"

export const HostedApi = HttpApi.make("spoke").add(SessionsApi).add(AgentsApi).add(KeysApi)
