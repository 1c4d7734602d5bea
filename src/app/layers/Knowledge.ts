/** Sources, what is read from them, and what is found. */
import * as Layer from "effect/Layer"
import { ArtifactRows } from "../../store/knowledge/ArtifactRows.ts"
import { ContentStore } from "../../store/knowledge/Contents.ts"
import { CrawlEntryStore } from "../../store/knowledge/CrawlEntries.ts"
import { EmbeddingProfileStore } from "../../store/knowledge/EmbeddingProfiles.ts"
import { EmbeddingStore } from "../../store/knowledge/Embeddings.ts"
import { FindingStore } from "../../store/knowledge/Findings.ts"
import { ImpactStore } from "../../store/knowledge/Impact.ts"
import { IngestionJobStore } from "../../store/knowledge/IngestionJobs.ts"
import { KnowledgeStore } from "../../store/knowledge/Knowledge.ts"
import { PassageStore } from "../../store/knowledge/Passages.ts"
import { ReadingStore } from "../../store/knowledge/Readings.ts"
import { RefreshStore } from "../../store/knowledge/Refreshes.ts"
import { ReindexStore } from "../../store/knowledge/Reindex.ts"
import { SourceStore } from "../../store/knowledge/Sources.ts"
import { VectorCopiesStore } from "../../store/knowledge/VectorCopies.ts"
import { VectorEncodingStore } from "../../store/knowledge/VectorEncoding.ts"
import { VectorIndexStore } from "../../store/knowledge/VectorIndexes.ts"
import { Experiments } from "../../usecases/agents/Experiments.ts"
import { ConnectorPass } from "../../usecases/knowledge/ConnectorPass.ts"
import { Contents } from "../../usecases/knowledge/Contents.ts"
import { Crawls } from "../../usecases/knowledge/Crawls.ts"
import { Embed } from "../../usecases/knowledge/Embed.ts"
import { EmbeddingProfiles } from "../../usecases/knowledge/EmbeddingProfiles.ts"
import { Findings } from "../../usecases/knowledge/Findings.ts"
import { Impact } from "../../usecases/knowledge/Impact.ts"
import { Ingest } from "../../usecases/knowledge/Ingest.ts"
import { Refresh } from "../../usecases/knowledge/Refresh.ts"
import { Reindex } from "../../usecases/knowledge/Reindex.ts"
import { Retrieve } from "../../usecases/knowledge/Retrieve.ts"
import { Sources } from "../../usecases/knowledge/Sources.ts"
import { VectorStorage } from "../../usecases/knowledge/VectorStorage.ts"

export const stores = Layer.mergeAll(
  ArtifactRows.Default,
  ContentStore.Default,
  CrawlEntryStore.Default,
  EmbeddingProfileStore.Default,
  EmbeddingStore.Default,
  FindingStore.Default,
  ImpactStore.Default,
  IngestionJobStore.Default,
  KnowledgeStore.Default,
  PassageStore.Default,
  ReadingStore.Default,
  RefreshStore.Default,
  ReindexStore.Default,
  SourceStore.Default,
  VectorCopiesStore.Default,
  VectorEncodingStore.Default,
  VectorIndexStore.Default
)

export const layer = Layer.mergeAll(
  Contents.Default,
  Crawls.Default,
  Embed.Default,
  EmbeddingProfiles.Default,
  Findings.Default,
  Impact.Default.pipe(Layer.provide(Experiments.Default)),
  Ingest.Default.pipe(Layer.provide(ConnectorPass.Default)),
  Refresh.Default.pipe(Layer.provide(Sources.Default)),
  Reindex.Default,
  Retrieve.Default,
  Sources.Default,
  VectorStorage.Default
)
