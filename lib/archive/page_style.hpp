#pragma once
// Style sheet and icons of the archive's pages, inlined into each so that a page outlives everything else. Constants.

#include <string_view>

namespace holdfast::archive {

// Colours are pairs checked for a contrast of at least 4.5:1 (text) in both schemes; tone is always doubled by icon and
// word.
inline constexpr std::string_view kPageStyle = R"css(
:root{color-scheme:light dark;--paper:#faf8f4;--sheet:#fffefb;--ink:#1e1c19;--soft:#605b53;--line:#e4dfd4;--well:#f1ede5;
--link:#0a566b;--ok:#1d6539;--ok-bg:#e3f0e5;--warn:#7d5000;--warn-bg:#f8ecd0;--bad:#a02419;--bad-bg:#fae5e1;
--mute:#5f5a52;--mute-bg:#ece8df;--shadow:0 1px 2px #2b241814,0 12px 32px -12px #2b24182e;
--serif:"Iowan Old Style","Palatino Linotype",Palatino,"Source Serif 4","Noto Serif",Georgia,serif;
--sans:system-ui,-apple-system,"Segoe UI",Roboto,"Noto Sans","Helvetica Neue",Arial,sans-serif;
--mono:ui-monospace,"SF Mono","Cascadia Mono","JetBrains Mono",Menlo,Consolas,"DejaVu Sans Mono",monospace}
@media (prefers-color-scheme:dark){:root{--paper:#151412;--sheet:#1d1b18;--ink:#ece7dd;--soft:#aaa397;--line:#35312a;
--well:#24211d;--link:#82c7d9;--ok:#8ad3a0;--ok-bg:#17301f;--warn:#e6bd6a;--warn-bg:#362a10;--bad:#f3a195;--bad-bg:#3e1a15;
--mute:#b1aa9e;--mute-bg:#2b2823;--shadow:0 1px 2px #0006,0 16px 40px -16px #000a}}
*,*::before,*::after{box-sizing:border-box}
html{-webkit-text-size-adjust:100%;text-size-adjust:100%}
body{margin:0;background:var(--paper);color:var(--ink);font:16px/1.55 var(--sans);overflow-wrap:anywhere}
a{color:var(--link);text-decoration-thickness:1px;text-underline-offset:.18em}
a:hover{text-decoration-thickness:2px}
:focus-visible{outline:3px solid var(--link);outline-offset:2px;border-radius:3px}
h1,h2,h3,p,ul,ol,dl,dd,figure{margin:0;padding:0}
ul,ol{list-style:none}
h1,h2{font-family:var(--serif);font-weight:600;letter-spacing:-.012em;text-wrap:balance}
h1{font-size:clamp(1.75rem,1.2rem + 2.4vw,2.75rem);line-height:1.14}
h2{font-size:1.375rem;line-height:1.3}
h3{font-size:1rem;line-height:1.4;font-weight:650}
code,pre,.mono{font-family:var(--mono);font-size:.8125rem}
.sprite{position:absolute;width:0;height:0}
.i{width:1em;height:1em;flex:none;fill:none;stroke:currentColor;stroke-width:2.2;stroke-linecap:round;stroke-linejoin:round}
.sr{position:absolute;width:1px;height:1px;overflow:hidden;clip-path:inset(50%);white-space:nowrap}
.skip{position:absolute;left:1rem;top:-4rem;background:var(--sheet);padding:.6rem 1rem;z-index:9}
.skip:focus{top:1rem}
.page{max-width:76rem;margin:0 auto;padding:0 clamp(1.125rem,4vw,3rem)}
.mast{padding:clamp(1.75rem,5vw,3.75rem) 0 clamp(1.25rem,3vw,2rem)}
.kicker{display:flex;flex-wrap:wrap;align-items:center;gap:.5rem .875rem;margin-bottom:1rem;color:var(--soft);font-size:.875rem}
.mast h1{max-width:24em}
.favicon{width:20px;height:20px;border-radius:4px;object-fit:contain}
.url{margin-top:.75rem;font:.9375rem/1.5 var(--mono)}
.url a{text-decoration-color:color-mix(in srgb,currentColor 40%,transparent)}
.ways{display:flex;flex-wrap:wrap;gap:.5rem;margin-top:1.25rem}
.ways a{display:block;padding:.25rem .875rem;border:1px solid var(--line);border-radius:2rem;background:var(--sheet);font-size:.875rem;text-decoration:none}
.ways a:hover{border-color:currentColor}
.facts{display:flex;flex-wrap:wrap;gap:1rem 2.5rem;margin-top:1.75rem;padding-top:1.125rem;border-top:1px solid var(--line)}
.facts dt{font-size:.8125rem;color:var(--soft)}
.facts dd{font-variant-numeric:tabular-nums}
.facts .sub{color:var(--soft)}
.tags{display:flex;flex-wrap:wrap;gap:.25rem .375rem}
.tags li{padding:0 .5rem;border:1px solid var(--line);border-radius:1rem;font-size:.8125rem;line-height:1.5rem;background:var(--sheet)}
.badge{display:inline-flex;align-items:center;gap:.375rem;padding:.0625rem .625rem .0625rem .5rem;border-radius:1rem;
font-size:.8125rem;font-weight:600;line-height:1.5rem;white-space:nowrap}
.badge.ok,.tile.ok .i{color:var(--ok)}.badge.ok{background:var(--ok-bg)}
.badge.warn,.tile.warn .i{color:var(--warn)}.badge.warn{background:var(--warn-bg)}
.badge.bad,.tile.bad .i{color:var(--bad)}.badge.bad{background:var(--bad-bg)}
.badge.mute,.tile.mute .i{color:var(--mute)}.badge.mute{background:var(--mute-bg)}
.result .badge.ok{background:none;padding-right:0;font-weight:500}
.spread{display:grid;gap:clamp(2rem,4vw,3.5rem);padding-bottom:3rem}
@media (min-width:62rem){.spread.two{grid-template-columns:minmax(0,7fr) minmax(0,6fr);align-items:start}
.spread.two .look{position:sticky;top:1.5rem}}
.spread>*{min-width:0}
.shot{background:var(--sheet);border:1px solid var(--line);border-radius:10px;overflow:hidden;box-shadow:var(--shadow)}
.shot a{display:block;max-height:min(82vh,60rem);overflow:hidden}
.shot img{display:block;width:100%;height:auto}
.shot iframe{display:block;width:100%;height:min(82vh,60rem);border:0;background:#fff}
.shot figcaption,.note{padding:.625rem 1rem;font-size:.8125rem;color:var(--soft)}
.shot figcaption{border-top:1px solid var(--line)}
.note{padding:0 0 .75rem}
.block+.block{margin-top:2.75rem}
.block>h2{margin-bottom:.25rem}
.lede{color:var(--soft);font-size:.9375rem;margin-bottom:.75rem}
.results{border-top:1px solid var(--line)}
.result{padding:1.125rem 0 1.25rem;border-bottom:1px solid var(--line)}
.result:target{background:var(--well);box-shadow:0 0 0 .75rem var(--well);border-radius:2px}
.cap{display:flex;flex-wrap:wrap;justify-content:space-between;align-items:baseline;gap:.25rem .75rem}
.said{margin-top:.125rem;color:var(--soft);font-size:.9375rem}
.said.err{color:var(--bad)}
.files{margin-top:.625rem}
.files li{display:flex;justify-content:space-between;gap:1rem;padding:.1875rem 0;font-size:.875rem;line-height:1.45}
.files a{font-family:var(--mono);font-size:.8125rem;min-width:0}
.size{flex:none;color:var(--soft);font-size:.8125rem;font-variant-numeric:tabular-nums}
.cost{margin-top:.5rem;color:var(--soft);font-size:.8125rem;font-variant-numeric:tabular-nums}
.cost span+span::before{content:"\00b7";margin:0 .5em}
details{margin-top:.5rem;font-size:.875rem}
summary{cursor:pointer;color:var(--link);padding:.25rem 0;width:fit-content;max-width:100%}
summary:hover{text-decoration:underline;text-underline-offset:.18em}
pre{margin:.375rem 0 0;padding:.875rem 1rem;background:var(--well);border-radius:8px;overflow:auto;max-height:26rem;
white-space:pre-wrap;line-height:1.5}
.quiet{border-top:1px solid var(--line)}
.quiet li{display:grid;grid-template-columns:minmax(7rem,11rem) 1fr;gap:.125rem 1rem;padding:.5rem 0;border-bottom:1px solid var(--line);font-size:.875rem}
.quiet b{font-weight:600}
.quiet span{color:var(--soft)}
.links li{padding:.1875rem 0;font:.8125rem/1.5 var(--mono)}
.foot{border-top:1px solid var(--line);padding:1.5rem 0 3rem;color:var(--soft);font-size:.875rem}
.foot p+p{margin-top:.5rem}
.foot code{padding:.125rem .375rem;background:var(--well);border-radius:4px;color:var(--ink)}
.seeds{margin-top:.75rem;font:.9375rem/1.6 var(--mono)}
.sift{display:none;flex-wrap:wrap;gap:.5rem;margin:0 0 1.25rem;padding:0;border:0}
@supports selector(:has(*)){.sift{display:flex}}
.sift label{display:inline-flex;align-items:center;gap:.4rem;padding:.3125rem .875rem;border:1px solid var(--line);border-radius:2rem;
background:var(--sheet);font-size:.875rem;cursor:pointer;font-variant-numeric:tabular-nums}
.sift input{position:absolute;opacity:0;width:1px;height:1px}
.sift label:has(:checked){background:var(--ink);border-color:var(--ink);color:var(--paper)}
.sift label:has(:focus-visible){outline:3px solid var(--link);outline-offset:2px}
body:has(#only-succeeded:checked) [data-o]:not([data-o=succeeded]),body:has(#only-partial:checked) [data-o]:not([data-o=partial]),
body:has(#only-failed:checked) [data-o]:not([data-o=failed]),body:has(#only-other:checked) [data-o]:not([data-o=other]){display:none}
.tiles{display:grid;grid-template-columns:repeat(auto-fill,minmax(min(15.5rem,100%),1fr));gap:1.75rem 1.5rem;margin-bottom:2.5rem}
.tile{min-width:0}
.thumb{display:grid;aspect-ratio:16/11;overflow:hidden;background:var(--well);border:1px solid var(--line);border-radius:8px;
place-items:center;margin-bottom:.625rem;text-decoration:none}
.thumb img{width:100%;height:100%;object-fit:cover;object-position:top;display:block}
.thumb span{padding:1rem;font:600 1.125rem/1.3 var(--serif);color:var(--soft);text-align:center}
.tile h3{display:-webkit-box;-webkit-line-clamp:2;-webkit-box-orient:vertical;overflow:hidden;font-weight:600}
.tile h3 a,.rows td a{color:inherit;text-decoration:none}
.tile h3 a:hover,.rows td a:hover{text-decoration:underline}
.where{color:var(--soft);font:.75rem/1.5 var(--mono);overflow:hidden;text-overflow:ellipsis;white-space:nowrap}
.meta{display:flex;flex-wrap:wrap;align-items:center;white-space:nowrap;gap:.375rem;margin-top:.25rem;font-size:.8125rem;color:var(--soft);font-variant-numeric:tabular-nums}
.meta span+span::before{content:"\00b7";margin-right:.375rem}
.chunk{content-visibility:auto;contain-intrinsic-size:auto 11000px}
.rows{width:100%;border-collapse:collapse;table-layout:fixed;font-size:.9375rem}
.rows th{padding:.375rem 1rem .375rem 0;text-align:left;font-size:.8125rem;font-weight:500;color:var(--soft);border-bottom:1px solid var(--line)}
.rows td{padding:.5rem 1rem .5rem 0;border-bottom:1px solid var(--line);vertical-align:top}
.rows .o{width:8.5rem}.rows .d{width:4.5rem}.rows .b{width:6rem}
.rows .d,.rows .b{text-align:right;font-variant-numeric:tabular-nums}
.rows .b{padding-right:0}
.rows .t{overflow:hidden;text-overflow:ellipsis;white-space:nowrap;display:block}
@media (max-width:40rem){.facts{display:grid;grid-template-columns:1fr 1fr;gap:.875rem 1.25rem}.facts .wide{grid-column:1/-1}
.quiet li{grid-template-columns:1fr}.rows .d{display:none}.rows .o{width:2.25rem}.rows .b{width:4.75rem}
.rows td{padding-right:.5rem}.rows .b{padding-right:0}.rows .badge{padding:.25rem;line-height:1;font-size:0;gap:0}.rows .badge .i{font-size:.875rem}
.rows th.o{font-size:0}.tiles{gap:1.25rem 1rem;grid-template-columns:1fr 1fr}.tile .depth{display:none}.thumb span{padding:.5rem;font-size:.9375rem}.spread{padding-bottom:2rem}}
@media print{body{background:#fff}.spread.two{display:block}.shot{box-shadow:none;break-inside:avoid}.look{position:static}.sift,.skip{display:none}.chunk{content-visibility:visible}}
)css";

inline constexpr std::string_view kIconSprite =
    R"svg(<svg class="sprite" aria-hidden="true"><symbol id="i-ok" viewBox="0 0 24 24"><path d="M4.5 12.8l5 5L19.5 7"/></symbol><symbol id="i-warn" viewBox="0 0 24 24"><path d="M12 3.5L22 20.5H2zM12 10v4.5M12 17.6v.1"/></symbol><symbol id="i-bad" viewBox="0 0 24 24"><path d="M6 6l12 12M18 6L6 18"/></symbol><symbol id="i-mute" viewBox="0 0 24 24"><path d="M5 12h14"/></symbol></svg>
)svg";

} // namespace holdfast::archive
