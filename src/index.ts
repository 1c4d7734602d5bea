/**
 * The embedded library: `import { createSpoke } from "spoke"`. It runs the whole service in the process of its host,
 * which acts as the owner of the tenant. It opens no port, prints nothing and handles no signals.
 */
import * as Library from "./app/library/Library.ts"
import type { Spoke, SpokeSettings } from "./client/Spoke.ts"

export type {
  AgentClient,
  ChatStreamRequest,
  PageOptions,
  SourceInput,
  SourceView,
  Upload,
  WaitOptions
} from "./client/AgentClient.ts"
export { SpokeError, type ClientCode, type SpokeErrorCode } from "./client/Failure.ts"
export type {
  AgentInput,
  AgentView,
  ChannelInput,
  ChannelView,
  KeyInput,
  KeyView
} from "./client/OwnerClient.ts"
export type {
  Chat,
  ChatRequest,
  ChatResult,
  IdempotentOptions,
  StructuredRequest,
  StructuredResult
} from "./client/Chat.ts"
export type { StreamPart } from "./domain/chat/StreamPart.ts"
export { reader, type Reader, type ReaderOptions, type ReaderSettings } from "./client/Reader.ts"
export type {
  ReaderContext,
  ReaderDocument,
  ReaderRequest,
  ReaderResponse,
  ReaderSetting,
  ReaderStep,
  ReaderWords
} from "./domain/knowledge/HostReader.ts"
export { channel, type Channel, type ChannelAccountOf, type ChannelOptions } from "./client/Channel.ts"
export type {
  ChannelAccount,
  ChannelCall,
  ChannelDelivery,
  ChannelFetchRequest,
  ChannelFetchResponse,
  ChannelRefusal,
  ChannelSetting,
  Received,
  ReceivedFile,
  ReceivedMessage,
  ReceivedStatus,
  SentMessage
} from "./domain/channels/HostChannel.ts"
export { tool, type EffectInput, type Tool, type ToolOptions } from "./client/Tool.ts"
export type { StandardInput } from "./client/StandardSchema.ts"
export type { ToolCallContext } from "./domain/agents/HostTool.ts"
export type { CallOptions } from "./client/Transport.ts"
export type { AiSdkModel } from "./domain/chat/AiSdkModel.ts"
export type { AgentChat, LogEntry, Spoke, SpokeAgent, SpokeSettings } from "./client/Spoke.ts"

/** Opens the service, and creates or migrates its database. Rejects with a `SpokeError`. */
export const createSpoke = (settings: SpokeSettings = {}): Promise<Spoke> => Library.createSpoke(settings)
