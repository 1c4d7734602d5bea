/** Readers provided by the host, which read other systems. */
import type {
  HostReader,
  ReaderContext,
  ReaderSetting,
  ReaderStep,
  ReaderWords
} from "../domain/knowledge/HostReader.ts"
import { SpokeError } from "./Failure.ts"

type Value<S extends ReaderSetting> = S extends { readonly kind: "number" }
  ? number
  : S extends { readonly kind: "switch" }
    ? boolean
    : S extends { readonly kind: "list" }
      ? ReadonlyArray<string>
      : string

/** The settings that `read` receives. Those that are `optional` may be missing. */
export type ReaderSettings<S extends Readonly<Record<string, ReaderSetting>>> = {
  readonly [K in keyof S]: S[K] extends { readonly optional: true } ? Value<S[K]> | undefined : Value<S[K]>
}

export interface ReaderOptions<S extends Readonly<Record<string, ReaderSetting>>> {
  /** Its name in the dashboard. */
  readonly title: ReaderWords
  readonly description: ReaderWords
  /** By name, in the order of the form. */
  readonly settings: S
  /** Reads one step of a pass. A thrown error fails the attempt. The next attempt begins with the same step. */
  readonly read: (context: ReaderContext<ReaderSettings<S>>) => Promise<ReaderStep>
}

/** For `createSpoke({ readers })`; created by {@link reader}. */
export type Reader = HostReader

const settingName = /^[A-Za-z][A-Za-z0-9_]{0,63}$/u

/** Creates a reader from a function of the host. Sources of type `CONNECTOR` name it. Throws a `SpokeError`. */
export const reader = <const S extends Readonly<Record<string, ReaderSetting>>>(
  options: ReaderOptions<S>
): Reader => {
  const invalidName = Object.keys(options.settings).find((name) => !settingName.test(name))
  if (invalidName !== undefined) {
    throw new SpokeError({
      code: "INVALID_CONFIG",
      message: "The name of a reader's setting must be a letter, then up to 63 letters, digits or _."
    })
  }
  const { description, read, settings, title } = options
  // Stored settings were validated against `settings`.
  const isComplete = (given: Readonly<Record<string, unknown>>): given is ReaderSettings<S> =>
    Object.entries(settings).every(([name, { optional }]) => optional === true || given[name] !== undefined)
  return {
    title,
    description,
    settings,
    read: (context) =>
      isComplete(context.settings)
        ? read({ ...context, settings: context.settings })
        : Promise.reject(new SpokeError({ code: "INVALID_CONFIG", message: "The settings do not fit." }))
  }
}
