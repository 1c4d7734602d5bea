/**
 * The context of one request, without the services of the process, which routes got when they were built. Adding a
 * service copies the whole context. A request adds several services, and the process has more than a hundred.
 */
import * as Etag from "@effect/platform/Etag"
import * as FileSystem from "@effect/platform/FileSystem"
import * as HttpPlatform from "@effect/platform/HttpPlatform"
import * as Path from "@effect/platform/Path"
import * as Context from "effect/Context"

/** `HttpRouter.DefaultServices`: services that every route may use. */
const defaultServices: ReadonlySet<string> = new Set([
  Etag.Generator.key,
  FileSystem.FileSystem.key,
  HttpPlatform.HttpPlatform.key,
  Path.Path.key
])

/** The services that the request added to those of the process, and the default services of routes. */
export const own =
  (ofProcess: Context.Context<never>) =>
  <R>(context: Context.Context<R>): Context.Context<R> => {
    const services = new Map<string, unknown>()
    for (const [key, service] of context.unsafeMap)
      if (ofProcess.unsafeMap.get(key) !== service || defaultServices.has(key)) services.set(key, service)
    return Context.unsafeMake(services)
  }
