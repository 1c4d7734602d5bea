/** Code of web pages: listings as generators of documentation write them, and signatures of their API documentation. */
import { describe } from "@effect/vitest"
import { readsAll } from "./Pages.ts"

describe("Listings:", () => {
  readsAll({
    "numbers of lines within the lines are left out, numbers of the code are not": [
      `<div class="highlight-python notranslate"><div class="highlight"><pre><span></span><span class="linenos">1</span><span class="k">def</span> setup():
<span class="linenos">2</span>    port = <span class="mi">3000</span>
</pre></div></div>
       <div class="highlight"><pre class="chroma"><code class="language-go" data-lang="go"><span class="line"><span class="ln">1</span><span class="cl">a := <span class="mi">1</span>
</span></span><span class="line"><span class="ln">2</span><span class="cl">b := <span class="mi">2</span>
</span></span></code></pre></div>
       <p>Set line <span class="ln">7</span>.</p>`,
      "```python\ndef setup():\n    port = 3000\n```\n\n```go\na := 1\nb := 2\n```\n\nSet line 7."
    ],
    "the lines of Doxygen, without tooltips": [
      `<p>Write:</p><div class="fragment"><div class="line"><a id="l1"></a><span class="lineno">    1</span><span class="keyword">typedef</span> <a class="code" href="m.html">Matrix</a> M;</div>
<div class="foldopen"><div class="line"><span class="lineno">    2</span>  M m(3);</div></div>
<div class="ttc" id="a1"><div class="ttname"><a href="m.html">Matrix</a></div><div class="ttdoc">The matrix class</div></div></div><!-- fragment -->
       <div class="memproto"><table class="memname"><tr><td class="memname">int resize </td><td>(</td><td class="paramtype"><a href="i.html">Index</a>&#160;</td>
       <td class="paramname"><em>rows</em></td><td>)</td></tr></table></div>`,
      "Write:\n\n```\ntypedef Matrix M;\n  M m(3);\n```\n\n`int resize (Index rows)`"
    ],
    "titles stay, languages and buttons do not": [
      `<div class="literal-block-wrapper"><div class="code-block-caption"><span class="caption-text">conf.py</span><a class="headerlink" href="#id1">¶</a></div>
       <div class="highlight-python"><div class="highlight"><pre>debug = True</pre></div></div></div>
       <div class="language-js codeBlockContainer_Ck theme-code-block"><div class="codeBlockTitle_Kt">src/app.js</div><div class="codeBlockContent_bi">
       <pre class="prism-code language-js"><code><span class="token-line">start()<br></span></code></pre><div class="buttonGroup_x"><button>Copy</button></div></div></div>
       <div class="listingblock"><div class="title">Start the service</div><div class="content"><pre class="highlight"><code class="language-sh" data-lang="sh">spoke serve</code></pre></div></div>
       <div class="language-yaml"><button class="copy"></button><span class="lang">yaml</span><pre><code>port: 1</code></pre></div>
       <div class="code"><span>YAML</span><pre><code class="language-yaml">port: 2</code></pre></div>`,
      "conf.py\n\n```python\ndebug = True\n```\n\nsrc/app.js\n\n```js\nstart()\n```\n\nStart the service\n\n```sh\nspoke serve\n```\n\n```yaml\nport: 1\n```\n\n```yaml\nport: 2\n```"
    ],
    "short texts beside a listing": [
      `<div><div class="step">First, build it:</div><div><pre>make</pre></div></div>`,
      "First, build it:\n\n```\nmake\n```"
    ],
    "lines that were added or removed have a mark": [
      `<div class="language-js vp-adaptive-theme"><pre class="shiki has-diff"><code><span class="line">start({</span>
<span class="line diff remove">  port: 1</span>
<span class="line diff add">  port: 2</span>
<span class="line">})</span></code></pre></div>`,
      "```js\nstart({\n-  port: 1\n+  port: 2\n})\n```"
    ]
  })
})

describe("Signatures are content, whatever their types link to:", () => {
  readsAll({
    "of Javadoc": [
      `<div class="summary-table"><div class="col-first"><code><a href="V.html">V</a></code></div><div class="col-second"><code><a href="#compute(K)">compute</a>&#8203;(<a href="K.html">K</a> key, <a href="F.html">Function</a>&lt;<a href="K.html">K</a>&gt; f)</code></div>
       <div class="col-last"><div class="block"><span class="deprecated-label">Deprecated.</span><div class="deprecation-comment">replaced by <code><a href="C.html#set(int)">Calendar.set(int)</a></code></div></div></div></div>
       <section class="detail" id="compute(K)"><h3>compute</h3><div class="member-signature"><span class="modifiers">public</span>&nbsp;<span class="return-type"><a href="V.html">V</a></span>&nbsp;<span class="element-name">compute</span><span class="parameters">(<a href="K.html">K</a>&nbsp;key)</span></div></section>`,
      "`V`\n\n`compute(K key, Function<K> f)`\n\nDeprecated.\n\nreplaced by `Calendar.set(int)`\n\n### compute\n\npublic V compute(K key)"
    ],
    "of rustdoc, without links to sources": [
      `<div id="variant.V4" class="variant small-section-header"><a href="#variant.V4" class="anchor field"></a><code>V4(<a class="struct" href="v4.html">Ipv4Addr</a>)</code></div>
       <details class="rustdoc-toggle method-toggle" open><summary><section id="method.eq" class="method trait-impl"><span class="rightside"><a class="srclink" href="ip.rs.html#36">source</a></span><a href="#method.eq" class="anchor"></a><h4 class="code-header">fn <a href="#method.eq" class="fnname">eq</a>(&amp;self, other: &amp;<a href="IpAddr.html">IpAddr</a>) -&gt; <a href="bool.html">bool</a></h4></section></summary>
       <div class="docblock"><p>Compares two addresses.</p><div class="example-wrap"><pre class="rust rust-example-rendered"><code>assert!(a == b);</code></pre><a class="test-arrow" target="_blank" href="https://play.example/?code=fn%20main">Run</a></div></div></details>`,
      "`V4(Ipv4Addr)`\n\n#### fn eq(&self, other: &IpAddr) -> bool\n\nCompares two addresses.\n\n```rust\nassert!(a == b);\n```"
    ]
  })
})
