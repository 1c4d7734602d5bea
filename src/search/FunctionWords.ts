/**
 * Function words: articles, pronouns, prepositions, auxiliary verbs. They tell a text's language. They occur in too
 * many chunks to distinguish them.
 */

/** The words of a list that is separated by white space. */
export const wordSet = (words: string): ReadonlySet<string> => new Set(words.trim().split(/\s+/))

/** English (the Snowball list). */
export const englishWords = wordSet(
  "i me my myself we our ours ourselves you your yours yourself yourselves he him his himself she her hers herself " +
    "it its itself they them their theirs themselves what which who whom this that these those am is are was were be " +
    "been being have has had having do does did doing a an the and but if or because as until while of at by for with " +
    "about against between into through during before after above below to from up down in out on off over under " +
    "again further then once here there when where why how all any both each few more most other some such no nor " +
    "not only own same so than too very s t can will just don should now"
)

/** Question words, beside {@link englishWords}: they show that something is asked, not what. */
const questionWords = wordSet(
  "see know want need get gets getting got give gives make makes call called tell say says look find much many lot " +
    "like also please would could may might must shall let lets happen happens mean means try way ways thing things " +
    "something someone somebody anything anyone everything help able possible exactly actually really still yet us " +
    "ve ll re d m doesn didn isn aren wasn won couldn wouldn shouldn"
)

/**
 * Words that questions and sources may share by chance. Search counts them, but they do not show that a text answers a
 * question.
 */
const vagueWords = wordSet(
  "good better best nice great right new name number time 怎么 怎样 什么 如何 为什 多少 多久 哪里 哪些 可以 能否 是否 需要"
)

/**
 * The same in scripts without spaces, where they are parts of longer runs: endings of polite questions, interrogatives,
 * requests to be told something.
 */
const questionPhrases = [
  // Japanese.
  /(?:[てで]?い)?(?:ます|ました|ません)か|(?:です|でした|でしょう|だろう)か/gu,
  /(?:を|について)?(?:教えて|[てで])(?:ください|下さい)|を?教えて/gu,
  /どう(?:やって|すれば|したら)|ど[のれ](?:くらい|ぐらい|ように)|どこ(?:で|に|へ|から|まで)?|いくら|なぜ|(?<![幾如])何(?![学故])/gu,
  // Chinese.
  /请问|怎么样?|怎样|如何|为什么|什么|多少|多久|哪[里些个]|請問|怎麼樣?|怎樣|為什麼|什麼|哪裡|[吗嗎呢](?=[\s?？!！。]|$)/gu,
  // Korean.
  /어떻게|무엇[을이]?|어디(?:서|에서|에)?|얼마나|언제|습니까|인가요|나요|까요|알려\s?(?:주세요|줘)/gu,
  // Thai.
  /อย่างไร|ยังไง|อะไร|หรือไม่|หรือเปล่า|เท่าไหร่|เท่าไร|ทำไม|เมื่อไหร่|เมื่อไร|ที่ไหน|หมายถึง|หมายความว่า|(?:ไหม|มั้ย|ครับ|ค่ะ|คะ)(?=[\s?？]|$)/gu
]

const ascii = /^[\0-\x7f]*$/

/** The text without what is typical of questions, in scripts without spaces. */
export const withoutQuestionPhrases = (text: string): string =>
  ascii.test(text) ? text : questionPhrases.reduce((rest, phrases) => rest.replace(phrases, " "), text)

export const isVague = (word: string): boolean => vagueWords.has(word)
export const isQuestionWord = (word: string): boolean => questionWords.has(word)

/** German, Dutch, Swedish, Danish, Norwegian, Finnish, Icelandic, Hungarian, Turkish. */
const northern =
  "der die das dem den des ein eine einen einem einer eines und oder aber nicht ist sind war waren wird werden wurde " +
  "wurden worden hat haben hatte sein seine seiner ihr ihre ihrer ihren wir sie ich du er es mein meine meinen unser " +
  "mit von vom zu zum zur für auf aus bei beim nach über unter durch gegen ohne um im am als wie was wer wo wann warum " +
  "welche welcher welches auch noch nur schon sehr mehr wenn dass weil dann man sich kann können muss müssen soll darf " +
  "dürfen diese dieser dieses kein keine bis seit zwischen vor möglich gibt " +
  "het een van dat deze niet maar zijn werd wordt worden heeft hebben voor met bij uit naar door tegen zonder over ook " +
  "nog wel geen hoe wat waar wanneer waarom welke kan kunnen moet moeten mijn ons onze jullie hun je ik wij zij hij " +
  "och att det som en ett inte är var från till för av på vid hur vad när vilken kan ska skulle hade har jag vi ni han " +
  "hon den dem sin sitt sina min mitt mina eller men om också efter utan mellan under " +
  "og af ikke er fra hvordan hvad hvornår hvor jeg mig dig blev bliver været efter eller også skal kunne " +
  "hva når hvilken ikkje etter være vært blir ble mellom uten seg dette disse noen " +
  "ja ei se että mutta tai kun jos niin myös kuin hän he ne tämä mitä miten missä milloin miksi on ovat oli olivat " +
  "voi voin pitää minun joka jotka sekä vain kanssa ennen jälkeen kuinka " +
  "að ekki sem með fyrir hvernig þetta þú þeir " +
  "az egy és hogy nem van volt csak meg már mint vagy ha ki mi ez azt ezt hol mikor hogyan milyen lehet kell nekem " +
  "bir ve bu şu ile için da de mi mı mu mü ne nasıl nerede neden kaç hangi var yok değil olarak olan daha çok ama veya " +
  "gibi kadar sonra önce ben sen biz siz onlar benim bana olur oldu olduğu ise her"

/** French, Spanish, Portuguese, Italian, Catalan, Romanian. */
const romance =
  "le la les un une des du de et ou mais est sont était étaient être été avoir ont avait il elle ils elles nous vous je " +
  "tu mon ma mes son sa ses leur leurs notre votre ce cet cette ces qui que quoi dont où quand comment pourquoi combien " +
  "quel quelle quels quelles dans sur sous avec sans pour par pas ne plus aussi très entre vers chez depuis peut puis " +
  "peuvent faut doit au aux se si y en à l d c j n s m t qu " +
  "el los las una unos unas y o pero es son era eran ser estar está están fue fueron ha han había no su sus mi mis tu " +
  "nuestro nuestra lo le les se me te nos que quien cual cuál qué quién cómo cuándo cuánto cuánta cuántos cuántas dónde " +
  "porque por para con sin sobre entre hasta desde en del al más muy también ya como cuando donde este esta estos estas " +
  "ese esa eso esto puedo puede pueden tengo tiene tienen hay debo debe hace " +
  "o os as um uma uns umas e ou mas é são foi foram ser está estão tem têm não seu sua seus suas meu minha nosso nossa " +
  "eu ele ela eles elas nós você vocês quem qual quando quanto quantos quantas onde por que para com sem sobre até do " +
  "da dos das no na nos nas ao aos à às pelo pela num numa mais muito também já isso isto este esta esse essa posso pode " +
  "podem tenho devo há como " +
  "il lo gli i un uno una e ed o ma è sono era erano essere stato stata ha hanno aveva non suo sua suoi mio mia nostro " +
  "io lui lei noi voi loro mi ti ci vi si che chi cosa come dove quando quanto quanti quante quale perché in con su per " +
  "tra fra di da del della dei degli delle dello al alla ai alle nel nella nei nelle dal dalla sul sulla più molto anche " +
  "già questo questa questi queste quello quella posso può possono devo deve c'è " +
  "els amb però són també més quan què com on aquest aquesta dels als perquè " +
  "și sau dar este sunt era fi fost are au avea nu lui ei lor meu mea noastră eu el ea noi voi ce cine care cum când unde " +
  "cât câte câți de la cu fără pe pentru prin din în într între până după peste mai foarte și acest această aceste acel " +
  "pot poate trebuie se să al ale"

/** Polish, Czech, Slovak, Croatian, Serbian, Slovene, in Latin script; Vietnamese, Indonesian, Malay, Tagalog, Swahili. */
const otherWords =
  "i w we z ze na do od po o u za przez dla przy pod nad między nie to jest są był była było były być się jak co kto gdzie " +
  "kiedy dlaczego ile który która które których ten ta te tego tej tym ich jego jej mój moja nasz mogę może można muszę czy " +
  "lub albo ale oraz także tylko już bardzo " +
  "a v ve s se k ke pro při před mezi není je jsou byl byla bylo byly být jak kde kdy proč kolik který která které kterou " +
  "tento tato toto těch jeho její můj náš mohu může lze musím nebo ale také jen již velmi že aby když od pod nad " +
  "som sú bol bola nie ako kde kedy prečo koľko ktorý ktorá ktoré môj môžem môže alebo tiež len už " +
  "u na za sa iz od do je su bio bila nije kako gdje gde kada zašto koliko koji koja koje ili ali mogu može treba što šta " +
  "ovo ovaj biti in so ni kje kdaj zakaj lahko ter " +
  "và của là có được trong cho với những các một không này đó khi như từ đến ở vào ra người tôi bạn chúng để bằng nào gì " +
  "sao bao nhiêu đâu thế làm đã đang sẽ cũng về theo hay hoặc thì mà rằng tại bị " +
  "yang dan di ke dari untuk dengan pada adalah ini itu tidak akan bisa dapat saya anda kami kita mereka apa siapa mana " +
  "kapan bagaimana mengapa berapa atau juga oleh sebagai dalam telah sudah belum boleh " +
  "ang ng mga sa ay na at hindi ko mo kung paano saan kailan bakit " +
  "na ya wa kwa ni za katika hii hiyo kama lakini au nini jinsi gani wapi"

/** Of scripts other than Latin. */
const otherScripts =
  "и в во на с со к ко по из за от до для при о об у под над между без не ни но а или что чтобы как так это этот эта эти " +
  "тот то был была было были быть есть он она оно они мы вы я ты его её ее их мой моя мои наш ваш который которая которое " +
  "которые кто где когда почему сколько какой какая какие можно могу может нужно надо ли же бы уже ещё еще также только " +
  "все всё очень чем мне нам " +
  "і й та або але що як це цей ця ці він вона воно вони ми ви його її їх мій який яка яке які хто де коли чому скільки " +
  "можна можу може треба чи вже також тільки є був була було були бути з із зі від про " +
  "се са е си ще че да ли съм беше какво къде кога защо колко този тази това които който " +
  "ο η το οι τα του της των τον την τους τις ένα ένας μια μία και ή αλλά είναι ήταν έχει έχουν είχε να θα δεν μην με σε " +
  "για από προς στο στη στην στον στους στις στα που πως πώς τι ποιος ποια ποιο πότε πού γιατί πόσο πόσα πόσες πόσοι όταν " +
  "αν ως κατά μετά πριν μεταξύ χωρίς αυτό αυτή αυτός αυτά μου σου μας σας μπορώ μπορεί πρέπει " +
  "في من على إلى عن مع هذا هذه ذلك تلك التي الذي الذين هو هي هم هل ما ماذا متى أين كيف كم لماذا أي أو و لا لم لن ليس كان " +
  "كانت يكون تكون قد أن إن أنا أنت نحن بعد قبل عند بين كل كما لكن ثم حتى يمكن يمكنني " +
  "و در به از که این آن با برای است بود شد می را تا یا هم نیز چه چگونه کجا چرا چند آیا من ما شما آنها " +
  "ہے ہیں کا کی کے میں سے کو پر اور یہ وہ کیا کیسے کب کہاں نہیں " +
  "של את על עם אל מן מה מי זה זו זאת הוא היא הם הן אני אתה אנחנו לא כן או אבל גם רק כי אם איך איפה מתי למה כמה יש אין היה " +
  "में के की का को से पर और है हैं था थी थे यह वह ये वे इस उस ने भी नहीं तो ही कि जो क्या कैसे कब कहाँ कहां क्यों कितने कितना " +
  "कितनी लिए साथ एक हो होता होती कर करने किया जा सकता सकते सकती मैं हम आप मेरा मेरी अपने या"

const foreignLatin = wordSet(`${northern} ${romance} ${otherWords}`)

/** Function words of other languages that also occur in English texts, as words, names or abbreviations. */
const alsoEnglish = wordSet(
  "die man men ten pot sale care son par plus hat war min den sin bin com dan pour van ha ja ai os io ci vi ed al et ve re " +
    "im ma mi ni po na ke ko ti pro od iz ve api ale most los las del dos des come dove era ay " +
    "ut lo un si sa til far lei voi note on ne te ta da du je"
)

/** Whether the word is a function word of English and of no other language. */
export const isEnglishWord = (word: string): boolean => englishWords.has(word) && !foreignLatin.has(word)

/** Whether the word, in Latin script, is a function word of other languages only. */
export const isForeignWord = (word: string): boolean =>
  word.length > 1 && foreignLatin.has(word) && !englishWords.has(word) && !alsoEnglish.has(word)

/** The word as search compares it, with a dot on every Turkish `ı`. */
const dotted = (word: string): string => word.replaceAll("ı", "i")

const everywhere: ReadonlySet<string> = new Set(
  [...englishWords, ...foreignLatin, ...wordSet(otherScripts)].map(dotted)
)

/** Whether the word is a function word of any of the languages. */
export const isFunctionWord = (word: string): boolean => everywhere.has(dotted(word))
