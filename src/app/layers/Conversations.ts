/** Conversations and their people, as the dashboard shows them. */
import * as Layer from "effect/Layer"
import { ConversationFeedStore } from "../../store/conversations/ConversationFeed.ts"
import { ConversationImports } from "../../store/conversations/ConversationImports.ts"
import { ConversationStates } from "../../store/conversations/ConversationStates.ts"
import { ConversationStore } from "../../store/conversations/Conversations.ts"
import { EndUserStore } from "../../store/conversations/EndUsers.ts"
import { InboxItemStore } from "../../store/conversations/InboxItems.ts"
import { InboxListStore } from "../../store/conversations/InboxList.ts"
import { InboxViewStore } from "../../store/conversations/InboxView.ts"
import { InboxWorkStore } from "../../store/conversations/InboxWork.ts"
import { InsightStore } from "../../store/conversations/Insights.ts"
import { LegacyMessages } from "../../store/conversations/LegacyMessages.ts"
import { ReportedGapStore } from "../../store/conversations/ReportedGaps.ts"
import { Conversations } from "../../usecases/conversations/Conversations.ts"
import { EndUsers } from "../../usecases/conversations/EndUsers.ts"
import { GapSearch } from "../../usecases/conversations/GapSearch.ts"
import { ImportConversations } from "../../usecases/conversations/ImportConversations.ts"
import { InboxItems } from "../../usecases/conversations/InboxItems.ts"
import { Insights } from "../../usecases/conversations/Insights.ts"
import { LegacyKeys } from "../../usecases/conversations/LegacyKeys.ts"

export const stores = Layer.mergeAll(
  ConversationFeedStore.Default,
  ConversationImports.Default,
  ConversationStates.Default,
  ConversationStore.Default,
  EndUserStore.Default,
  InboxItemStore.Default,
  InboxListStore.Default,
  InboxViewStore.Default,
  InboxWorkStore.Default,
  InsightStore.Default,
  LegacyMessages.Default,
  ReportedGapStore.Default
)

export const layer = Layer.mergeAll(
  Conversations.Default,
  EndUsers.Default,
  GapSearch.Default.pipe(Layer.provideMerge(Insights.Default)),
  ImportConversations.Default,
  InboxItems.Default,
  LegacyKeys.Default
)
