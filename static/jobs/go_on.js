// Work that takes longer than a request goes on by itself; without this script a button does it.

document.querySelector("form[data-goes-on]").submit();
