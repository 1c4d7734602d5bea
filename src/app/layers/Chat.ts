/** Turns, and what answers conversations. */
import * as Layer from "effect/Layer"
import { AgentRunStore } from "../../store/chat/AgentRuns.ts"
import { RecordedRunStore } from "../../store/chat/RecordedRuns.ts"
import { TestConversationStore } from "../../store/chat/TestConversations.ts"
import { TurnClaimStore } from "../../store/chat/TurnClaims.ts"
import { Turns } from "../../store/chat/Turns.ts"
import { UnusedPassages } from "../../store/chat/UnusedPassages.ts"
import { WidgetMessageStore } from "../../store/chat/WidgetMessages.ts"
import { WidgetSessionStore } from "../../store/chat/WidgetSessions.ts"
import { AuditTrail } from "../../usecases/accounts/AuditTrail.ts"
import { Inbound } from "../../usecases/channels/Inbound.ts"
import { InboundFiles } from "../../usecases/channels/InboundFiles.ts"
import { AgentRuns } from "../../usecases/chat/AgentRuns.ts"
import { ChatRequests } from "../../usecases/chat/ChatRequests.ts"
import { ChatTurn } from "../../usecases/chat/ChatTurn.ts"
import { ProcessLease } from "../../usecases/chat/ProcessLease.ts"
import { RealtimeAccess } from "../../usecases/chat/RealtimeAccess.ts"
import { RunningTurns } from "../../usecases/chat/RunningTurns.ts"
import { Replays } from "../../usecases/chat/replay/Replays.ts"
import { ToolTrials } from "../../usecases/chat/tools/ToolTrials.ts"
import { ChatTools } from "../../usecases/chat/tools/Tools.ts"
import { Attachments } from "../../usecases/chat/widget/Attachments.ts"
import { Callers } from "../../usecases/chat/widget/Callers.ts"
import { HostedTurn } from "../../usecases/chat/widget/HostedTurn.ts"
import { WidgetSessions } from "../../usecases/chat/widget/Sessions.ts"
import { VisitorTokens } from "../../usecases/chat/widget/VisitorTokens.ts"
import { WidgetChat } from "../../usecases/chat/widget/WidgetChat.ts"
import { ConversationControl } from "../../usecases/conversations/ConversationControl.ts"
import { Handoff } from "../../usecases/conversations/Handoff.ts"
import { InboxView } from "../../usecases/conversations/InboxView.ts"
import { InboxWork } from "../../usecases/conversations/InboxWork.ts"
import { RealtimeFeed } from "../../usecases/conversations/RealtimeFeed.ts"
import { Takeover } from "../../usecases/conversations/Takeover.ts"
import { outbound } from "./Channels.ts"

export const stores = Layer.mergeAll(
  AgentRunStore.Default,
  RecordedRunStore.Default,
  TestConversationStore.Default,
  TurnClaimStore.Default,
  Turns.Default,
  UnusedPassages.Default,
  WidgetMessageStore.Default,
  WidgetSessionStore.Default
)

const turns = ChatRequests.Default.pipe(
  Layer.provideMerge(Layer.mergeAll(ChatTurn.Default, AgentRuns.Default, ToolTrials.Default)),
  Layer.provideMerge(RunningTurns.Default),
  Layer.provideMerge(
    Layer.mergeAll(ChatTools.Default, RealtimeAccess.Default, RealtimeFeed.Default, ProcessLease.Default)
  )
)

/** Takeover and handoff of conversations, and incoming channel messages. */
const answering = Inbound.Default.pipe(
  Layer.provide([InboundFiles.Default, Attachments.Default]),
  Layer.provideMerge(Layer.merge(Handoff.Default, Takeover.Default.pipe(Layer.provide(Attachments.Default)))),
  Layer.provideMerge(ConversationControl.Default),
  Layer.provideMerge(turns),
  Layer.provideMerge(outbound)
)

/** Turns, incoming channel messages, takeover, and the hosted chat with its sessions. */
export const layer = Layer.mergeAll(
  HostedTurn.Default,
  InboxView.Default.pipe(Layer.provide(AuditTrail.Default)),
  InboxWork.Default,
  Replays.Default,
  WidgetChat.Default
).pipe(
  Layer.provideMerge(
    Layer.mergeAll(Attachments.Default, Callers.Default, VisitorTokens.Default, WidgetSessions.Default)
  ),
  Layer.provideMerge(answering)
)
