/** The layers below sources of registered readers, beside the database. */
import * as Layer from "effect/Layer"
import * as Redacted from "effect/Redacted"
import { SourceReaders } from "../../../src/capabilities/SourceReaders.ts"
import * as DerivedKeys from "../../../src/capabilities/SecretBox/DerivedKeys.ts"
import { ReadingStore } from "../../../src/store/knowledge/Readings.ts"
import { ConnectorSettings } from "../../../src/usecases/knowledge/ConnectorSettings.ts"

export const layerSecrets = DerivedKeys.layer([Redacted.make("a master secret of at least 32 characters")])

/** `readers` are registered, and no others. */
export const layerSettings = (
  readers: Layer.Layer<SourceReaders> = Layer.succeed(SourceReaders, new Map())
) =>
  ConnectorSettings.Default.pipe(
    Layer.provideMerge(Layer.mergeAll(ReadingStore.Default, layerSecrets, readers))
  )
